"""`kernelmill run` and `sweep`: overrides in, the winners' table out; Snakemake does the work."""

import json
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import (
    CONF,
    RAW,
    OverridesCommand,
    groups_text,
    json_option,
    quiet_option,
    raw_argument,
)
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
@quiet_option
@json_option
@click.pass_context
def command(ctx: click.Context, arguments: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """Run an experiment: generate, compile, verify, profile, aggregate, track.

    An option of kernel, workload, hardware or optimization that the experiment has narrows its grid; any
    other option replaces that axis. Values are set as group.key=value. Hydra's flags work: --cfg job shows
    the composed configuration, --info defaults-tree where it comes from. Arguments after -- go to Snakemake.
    A worker process waits for the next run for five minutes; KERNELMILL_WORKER_SECONDS=0 ends it.

    \b
    Examples:
      kernelmill run kernel=softmax hardware=cpu search=surrogate
      kernelmill run experiment=smoke -- --dry-run
      kernelmill run experiment=smoke --json | python -m json.tool
    """
    return start(arguments, ctx.obj["passed_on"], RunOutput(quiet=quiet, json=as_json))


@click.command("sweep", cls=OverridesCommand, context_settings=RAW)
@raw_argument
@quiet_option
@json_option
@click.pass_context
def sweep(ctx: click.Context, arguments: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """Run every combination of the listed values; each is a job with an objective.

    Values are listed as in Hydra: a,b,c, choice(a,b), range(1,65,16), glob(soft*), interval(0,1). A sweeper
    such as hydra/sweeper=optuna chooses the combinations. All jobs are one run of Snakemake, whose arguments
    follow --.

    \b
    Examples:
      kernelmill sweep kernel=softmax,rms_norm workload=bert_base hardware=cpu
      kernelmill sweep kernel=softmax hardware=cpu "workload.dimensions.tokens=range(1,65,16)" -- --dry-run
    """
    return start(("--multirun", *arguments), ctx.obj["passed_on"], RunOutput(quiet=quiet, json=as_json))


class RunOutput(NamedTuple):
    """What a run prints."""

    quiet: bool = False
    json: bool = False

    @property
    def name(self) -> str:
        """As the launcher of sweeps calls it."""
        return "json" if self.json else "quiet" if self.quiet else "progress"


PROGRESS = RunOutput()


def start(arguments: Sequence[str], passed_on: Sequence[str], output: RunOutput) -> int:
    """Run, sweep or have Hydra answer, as the arguments ask for."""
    from pipeline.plan.config.groups import check_project

    check_project(CONF.parent)
    flags = [each for each in arguments if each.startswith("-") and each not in MULTIRUN]
    if any(each in MULTIRUN for each in arguments) and not flags:
        from pipeline.execution.sweep.command_line import multirun  # imports Hydra

        return multirun(list(arguments), list(passed_on), output.name)
    if flags:
        return _ask_hydra([each for each in arguments if each not in MULTIRUN])
    return run(arguments, passed_on, output)


def run(overrides: Sequence[str], passed_on: Sequence[str] = (), output: RunOutput = PROGRESS) -> int:
    """Run Snakemake for these overrides; print winners, failures and where the results are."""
    from pipeline.execution.run_results import is_finished, job_labels, result_of, result_text
    from pipeline.execution.snakemake_command import (
        REFUSED,
        SnakemakeExit,
        check_executors,
        cores,
        is_looking,
        run_snakemake,
    )
    from pipeline.execution.workflow import ROOT, find_plan
    from pipeline.plan.plan_cache import specs_store
    from pipeline.records.record import to_json
    from pipeline.store.atomic import is_writable

    check_executors(passed_on)
    writable = is_writable(ROOT)
    warm = writable and not is_looking(passed_on)
    with specs_store(ROOT) as store:
        plan = find_plan((tuple(overrides),), main=True, warm=warm, store=store)
    if not passed_on and not writable and is_finished(plan, ROOT):
        print(f"{ROOT}: not writable; these are the results that are there", file=sys.stderr)
        ended = SnakemakeExit(code=0, interrupted=False)
    else:
        config = ("--config", f"overrides={json.dumps(list(overrides))}") if overrides else ()
        ended = run_snakemake(
            [*cores(passed_on), *passed_on, *config],
            labels=job_labels(plan),
            quiet=output.quiet or output.json,
        )
    if is_looking(passed_on) or ended.code == REFUSED:
        return ended.code
    if ended.interrupted and not output.json:  # half a result would look like a whole one
        raise KeyboardInterrupt
    result = result_of(plan, ROOT, ended)
    print(to_json(result).decode() if output.json else result_text(result), flush=True)
    if ended.interrupted:
        raise KeyboardInterrupt
    return ended.code or (ExitCode.OK if result.succeeded else ExitCode.FAILED)


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
