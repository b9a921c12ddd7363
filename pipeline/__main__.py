"""Run an experiment: overrides in, the winners' table out; Snakemake does the work, as if asked directly.

python -m pipeline [OVERRIDE ...] [-- SNAKEMAKE ARGUMENT ...]

Hydra answers its own flags (--help, --cfg, --info, -sc). A run is composed by the config layer, with Hydra
and in its grammar, so that an error is one line and a list of options (`kernel=softmax,matmul`) is one plan.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline import completion
from pipeline.analyze.summary_text import summary_text
from pipeline.config.cache import current_plan
from pipeline.errors import KernelmillError
from pipeline.records.record import read_record
from pipeline.records.summary import Summary
from pipeline.records.tracked import Tracked, TrackOutput
from pipeline.workers.submit import begin
from pipeline.workflow import ROOT, Workflow

MULTIRUN = ("-m", "--multirun")  # lists of options are one plan with it and without it
LOOKING = ("-n", "--dry-run", "--dryrun", "--lint", "--report")


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code."""
    ours, passed_on = _split([argument for argument in arguments if argument not in MULTIRUN])
    if any(argument.startswith("-") for argument in ours):
        return _ask_hydra(ours)
    return run(ours, passed_on)


def run(overrides: Sequence[str], passed_on: Sequence[str] = ()) -> int:
    """Run Snakemake for these overrides, and show the winners where it came to its end."""
    try:
        start = begin if not any(each.startswith(LOOKING) for each in passed_on) else lambda: None
        plan = current_plan(tuple(overrides), root=Path.cwd(), store=ROOT, before_making=start)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    cores = (
        ()
        if any(argument.startswith(("--cores", "-c", "-j", "--jobs")) for argument in passed_on)
        else (
            "--cores",
            "all",
        )
    )
    config = ("--config", f"overrides={json.dumps(list(overrides))}") if overrides else ()
    code = _snakemake([*cores, *passed_on, *config])
    if code == 0 and not any(argument.startswith(LOOKING) for argument in passed_on):
        _show(Workflow(plan))
    return code


def _show(workflow: Workflow) -> None:
    """The winners, and where to read on."""
    summary = Path(workflow.aggregate)
    if not summary.is_file():  # only an earlier stage was asked for
        return
    print()
    print(summary_text(read_record(summary, Summary)))
    if Path(workflow.report).is_file():
        print(f"report   {workflow.report}")
    if Path(workflow.tracked).is_file():
        tracked = read_record(Path(workflow.tracked), TrackOutput).result
        print("MLflow   make ui" if isinstance(tracked, Tracked) else f"MLflow   {tracked.reason}")


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is ours or Hydra's, and what stands after `--` for Snakemake."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def _snakemake(arguments: Sequence[str]) -> int:
    """Run Snakemake in the foreground; Ctrl-C reaches it directly, and its end is awaited."""
    process = subprocess.Popen([sys.executable, "-m", "snakemake", *arguments])
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code


def _ask_hydra(arguments: Sequence[str]) -> int:
    """Let Hydra answer one of its flags."""
    if arguments[0] in ("-sc", "--shell-completion") and len(arguments) > 1:
        script = completion.script(arguments[1])
        if script is not None:
            print(script)
            return 0
        completion.prepare_query()

    import hydra

    from pipeline.config.compose import HYDRA_VERSION, PRIMARY

    @hydra.main(version_base=HYDRA_VERSION, config_path=str(Path("conf").absolute()), config_name=PRIMARY)
    def answer(_: object) -> None:
        print(f"error: {' '.join(arguments)}: nothing to answer (python -m pipeline --help)", file=sys.stderr)
        sys.exit(2)

    sys.argv = ["python -m pipeline", *arguments]
    answer()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
