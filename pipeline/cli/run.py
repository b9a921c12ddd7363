"""Run an experiment: overrides in, the winners' table out; Snakemake does the work, as if asked directly.

python -m pipeline [-m] [OVERRIDE ...] [-- SNAKEMAKE ARGUMENT ...]

Hydra answers its own flags (--help, --cfg, --info, -sc) and runs sweeps (-m, `pipeline.execution.sweep`).
A run is composed by the room `plan`, with Hydra and in its grammar, so that an error is one line and a list
of options (`kernel=softmax,matmul`) is one plan.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.cli import completion
from pipeline.execution.snakemake_command import check_executors, cores, is_looking, run_snakemake
from pipeline.execution.workers.submit import begin
from pipeline.execution.workflow import INTERRUPTED, ROOT, Workflow, show
from pipeline.plan.config.groups import check_project
from pipeline.plan.plan_cache import current_plan
from pipeline.records.environment import let_hydra_raise
from pipeline.records.errors import KernelmillError

MULTIRUN = ("-m", "--multirun", "hydra.mode=MULTIRUN")
ASKING = (
    *("--help", "-h", "--hydra-help", "--version", "--cfg", "-c", "--info", "-i"),
    *("--shell-completion", "-sc"),
)
"""Flags of Hydra that run nothing."""

CONF = Path("conf")


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code."""
    try:
        check_project(CONF.parent)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    ours, passed_on = _split(arguments)
    asks = any(argument.split("=")[0] in ASKING for argument in ours)
    if any(argument in MULTIRUN for argument in ours) and not asks:
        from pipeline.execution.sweep.command_line import multirun  # Hydra, which nothing else here needs

        return multirun(ours, passed_on)
    ours = [argument for argument in ours if argument not in MULTIRUN]
    if any(argument.startswith("-") for argument in ours):
        return _ask_hydra(ours if asks else [*ours, "hydra.output_subdir=null"])
    return run(ours, passed_on)


def run(overrides: Sequence[str], passed_on: Sequence[str] = ()) -> int:
    """Run Snakemake for these overrides, and show the winners where it came to its end."""
    try:
        check_executors(passed_on)
        start = (lambda: None) if is_looking(passed_on) else begin
        plan = current_plan(tuple(overrides), root=Path.cwd(), store=ROOT, before_making=start)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"error: {INTERRUPTED}", file=sys.stderr)
        return 130  # as shells have it for SIGINT
    config = ("--config", f"overrides={json.dumps(list(overrides))}") if overrides else ()
    code = run_snakemake([*cores(passed_on), *passed_on, *config]).code
    if code == 0 and not is_looking(passed_on):
        show(Workflow(plan))
    return code


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is ours or Hydra's, and what stands after `--` for Snakemake."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def _ask_hydra(arguments: Sequence[str]) -> int:
    """Let Hydra answer one of its flags."""
    if arguments[0] in ("-sc", "--shell-completion") and len(arguments) > 1:
        script = completion.script(arguments[1])
        if script is not None:
            print(script)
            return 0
        completion.prepare_query()

    import hydra

    from pipeline.plan.config.compose import HYDRA_VERSION, MISTAKES, PRIMARY, error_line

    @hydra.main(version_base=HYDRA_VERSION, config_path=str(CONF.absolute()), config_name=PRIMARY)
    def answer(_: object) -> None:
        print(f"error: {' '.join(arguments)}: nothing to answer (python -m pipeline --help)", file=sys.stderr)
        sys.exit(2)

    sys.argv = ["python -m pipeline", *arguments]
    tracebacks = let_hydra_raise()
    try:
        answer()
    except MISTAKES as error:
        if tracebacks:
            raise
        print(f"error: {error_line(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
