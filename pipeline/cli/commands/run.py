"""`kernelmill run`: overrides in, the winners' table out; Snakemake does the work, as if called directly."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import CONF, RAW, OverridesCommand, groups_text, raw_argument
from pipeline.records.errors import ConfigError

ASKING = ("--hydra-help", "--cfg", "-c", "--info", "-i")
"""Flags of Hydra that run nothing."""
MULTIRUN = ("-m", "--multirun", "hydra.mode=MULTIRUN")


class _RunCommand(OverridesCommand):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options that conf/ has at this moment."""
        self.epilog = groups_text()
        super().format_epilog(ctx, formatter)


@click.command("run", cls=_RunCommand, context_settings=RAW)
@raw_argument
@click.pass_context
def command(ctx: click.Context, arguments: tuple[str, ...]) -> int:
    """Run an experiment: generate, compile, verify, profile, aggregate, track.

    An option of kernel, workload, hardware or optimization that the experiment has narrows its grid; any
    other option replaces that axis. Values are set as group.key=value. Hydra's flags work: --cfg job shows
    the composed configuration, --info defaults-tree where it comes from. Arguments after -- go to Snakemake.

    \b
    Examples:
      kernelmill run kernel=softmax hardware=cpu search=surrogate
      kernelmill run experiment=smoke -- --dry-run
    """
    return start(arguments, ctx.obj["passed_on"])


def start(arguments: Sequence[str], passed_on: Sequence[str]) -> int:
    """Run, sweep or have Hydra answer, as the arguments ask for."""
    from pipeline.plan.config.groups import check_project

    check_project(CONF.parent)
    flags = [each for each in arguments if each.startswith("-") and each not in MULTIRUN]
    if any(each in MULTIRUN for each in arguments) and not flags:
        from pipeline.execution.sweep.command_line import multirun  # imports Hydra

        return multirun(list(arguments), list(passed_on))
    if flags:
        return _ask_hydra([each for each in arguments if each not in MULTIRUN])
    return run(arguments, passed_on)


def run(overrides: Sequence[str], passed_on: Sequence[str] = ()) -> int:
    """Run Snakemake for these overrides, and print the winners if it finishes."""
    from pipeline.execution.snakemake_command import check_executors, cores, is_looking, run_snakemake
    from pipeline.execution.workers.submit import begin
    from pipeline.execution.workflow import INTERRUPTED, ROOT, Workflow, show
    from pipeline.plan.plan_cache import current_plan

    try:
        check_executors(passed_on)
        before = (lambda: None) if is_looking(passed_on) else begin
        plan = current_plan(tuple(overrides), root=Path.cwd(), store=ROOT, before_making=before)
    except KeyboardInterrupt:
        print(f"error: {INTERRUPTED}", file=sys.stderr)
        return ExitCode.INTERRUPTED
    config = ("--config", f"overrides={json.dumps(list(overrides))}") if overrides else ()
    code = run_snakemake([*cores(passed_on), *passed_on, *config]).code
    if code == 0 and not is_looking(passed_on):
        show(Workflow(plan))
    return code


def _ask_hydra(arguments: Sequence[str]) -> int:
    """Let Hydra answer one of its flags; it leaves no folder behind."""
    import hydra

    from pipeline.plan.config.compose import HYDRA_VERSION, MISTAKES, PRIMARY, error_line
    from pipeline.records.environment import let_hydra_raise

    @hydra.main(version_base=HYDRA_VERSION, config_path=str(CONF.absolute()), config_name=PRIMARY)
    def answer(_: object) -> None:
        raise ConfigError(f"{' '.join(arguments)}: nothing to show (kernelmill run --help)")

    asks = any(each.split("=")[0] in ASKING for each in arguments)
    sys.argv = ["kernelmill run", *arguments, *(() if asks else ("hydra.output_subdir=null",))]
    tracebacks = let_hydra_raise()
    try:
        answer()
    except MISTAKES as error:
        if tracebacks:
            raise
        raise ConfigError(error_line(error)) from None
    return ExitCode.OK
