"""`kernelmill report`: the HTML report of an experiment."""

import json

import click

from pipeline.cli.override_arguments import overrides_argument


@click.command("report")
@overrides_argument
def command(overrides: tuple[str, ...]) -> int:
    """Make the report of an experiment; what it needs and does not exist yet is run first.

    \b
    Examples:
      kernelmill report
      kernelmill report experiment=smoke
    """
    from pathlib import Path

    from pipeline.execution.run_results import job_labels
    from pipeline.execution.snakemake_command import run_snakemake
    from pipeline.execution.workflow import ROOT, Workflow
    from pipeline.plan.plan_cache import current_plan

    plan = current_plan(overrides, root=Path.cwd(), store=ROOT)
    config = ["--config", f"overrides={json.dumps(list(overrides))}"] if overrides else []
    code = run_snakemake(["--cores", "all", "report", *config], labels=job_labels(plan)).code
    if code == 0:
        print(f"report   {Workflow(plan).report}")
    return code
