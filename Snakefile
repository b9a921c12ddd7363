"""Kernelmill's workflow: conf/ -> plan -> generate -> compile -> verify -> profile -> aggregate -> MLflow, report.

snakemake --cores all                                       the default experiment
snakemake --cores all verify                                up to a stage
snakemake --cores all --config experiment=smoke             another experiment
snakemake --cores all --config overrides="kernel=softmax"   a part of it; `kernelmill run --help` explains
snakemake --cores all judge --config problems=DIR           candidates from elsewhere: `kernelmill judge`
"""

from pipeline.execution.snakemake_internals import ends_soon, start_at_once, stop_at_once
from pipeline.execution.workflow import open_workflow

asked = {"main": workflow.is_main_process, "dryrun": workflow.output_settings.dryrun}


onstart:
    start_at_once(workflow)
    stop_at_once()


onsuccess:
    ends_soon()


onerror:
    ends_soon()


if "problems" in config:
    # Here, because it brings the composing of configurations, which a plan that is kept does not need.
    from pipeline.execution.stage_commands import shell_line
    from pipeline.execution.judging_run import open_judging
    from pipeline.execution.workflow import ROOT
    from pipeline.stages.table import STAGES

    judging = open_judging(config, **asked)

    include: "workflows/rules/judge.smk"

else:
    run = open_workflow(config, **asked)

    # Too small for a queue, and tracking has one writer: where Snakemake runs.
    localrules:
        all,
        generate_variants,
        aggregate,
        track,
        report,

    rule all:
        default_target: True
        input:
            run.report,

    # generate, compile, verify, profile, mutate, aggregate, track, report: workflows/rules/NAME.smk
    for path in run.rules:

        include: path


# The plan is in use to the end.
ends_soon()
