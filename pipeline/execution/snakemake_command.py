"""Run Snakemake in the foreground. In: its arguments. Out: how it ended; Ctrl-C reaches it directly."""

import functools
import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.execution.run_display import JobLabels, RunDisplay
from pipeline.records.environment import that_report_to
from pipeline.records.errors import ConfigError, hint
from pipeline.records.record import Record
from pipeline.sandbox.processes.supervisor import die_with_parent

LOOKING = (
    *("-n", "--dry-run", "--dryrun", "--lint", "--report", "--summary", "--detailed-summary", "--list"),
    *("--dag", "--rulegraph", "--filegraph", "--help", "-h", "--version", "--unlock"),
)
"""Arguments with which it runs nothing."""
TALKATIVE = ("--verbose", "--printshellcmds", "-p", "--debug-dag", "--show-failed-logs", "--logger")
"""Arguments that ask for Snakemake's own output."""
CORES = ("--cores", "-c", "-j", "--jobs")
PROFILES = Path("workflows/profiles")
PROFILE = ("--profile", "--workflow-profile")
PROFILES_SET = tuple(f"{name}=" for name in PROFILE)
BUILT_IN = ("local", "dryrun", "touch")
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it."""
REFUSED = 2
"""Snakemake's exit code where it does not take its arguments or its profile: nothing has run."""
_EXECUTOR = re.compile(r"^executor:\s*[\"']?([\w-]+)", re.MULTILINE)


class SnakemakeExit(Record, frozen=True, kw_only=True):
    """How Snakemake ended."""

    code: int
    interrupted: bool
    """Whether the user asked for it: Ctrl-C."""
    failed_jobs: tuple[str, ...] = ()
    """What was shown of the jobs that failed, a line each."""


def run_snakemake(
    arguments: Sequence[str], *, labels: JobLabels | None = None, quiet: bool = False
) -> SnakemakeExit:
    """Run it to its end; it gets the terminal's signals itself, and ends its jobs before it goes.

    So it does where this process is killed: nothing goes on behind the user's back. Call it from the main
    thread: what counts for Snakemake is the end of the thread that started it. With `labels` the run is
    shown by `RunDisplay`; without, or if Snakemake is asked to show something, it writes to the terminal.
    """
    asked = is_looking(arguments) or any(each in TALKATIVE for each in arguments)
    shown = None if labels is None or asked else RunDisplay(labels, quiet=quiet)
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *arguments],
        preexec_fn=functools.partial(_end_with, os.getpid()),  # noqa: PLW1509  (no threads here)
        env=None if shown is None else that_report_to(shown.address),
        stdout=None if shown is None else subprocess.PIPE,
        stderr=None if shown is None else subprocess.STDOUT,
    )
    if shown is not None:
        assert process.stdout is not None
        shown.follow(process.stdout)
    interrupted = False
    while True:
        try:
            code = process.wait()
            failed = () if shown is None else shown.close(code if not interrupted else INTERRUPTED)
        except KeyboardInterrupt:
            if shown is not None and not interrupted:
                shown.stop()
            interrupted = True
            # Ctrl-C in a terminal reaches Snakemake and its jobs, too; `kill -INT` reaches this process only.
            # Whichever signal Snakemake gets, it ends its jobs (`snakemake_internals.stop_at_once`).
            process.terminate()
            continue
        code = code if code >= 0 else 128 - code
        return SnakemakeExit(code=code, interrupted=interrupted, failed_jobs=tuple(map(str, failed)))


def _end_with(command: int) -> None:
    """In Snakemake's process: SIGTERM when the command ends, also if it has ended already."""
    die_with_parent(signal.SIGTERM)
    if os.getppid() != command:
        os._exit(1)


def cores(arguments: Sequence[str]) -> tuple[str, ...]:
    """All cores, where the arguments say nothing of them."""
    return () if any(argument.startswith(CORES) for argument in arguments) else ("--cores", "all")


def check_executors(arguments: Sequence[str]) -> None:
    """Raise ConfigError where a profile wants an executor that is not installed.

    Snakemake would print a hundred lines of usage before it said so.
    """
    places = [at for at, argument in enumerate(arguments[:-1]) if argument in PROFILE]
    named = [arguments[at + 1] for at in places]
    named += [argument.partition("=")[2] for argument in arguments if argument.startswith(PROFILES_SET)]
    for folder in named:
        for file in sorted(Path(folder).glob("*.yaml")):
            match = _EXECUTOR.search(file.read_text(encoding="utf-8", errors="replace"))
            if match is None or match[1] in BUILT_IN or importlib.util.find_spec(_plugin(match[1])):
                continue
            package = _plugin(match[1]).replace("_", "-")
            raise ConfigError(f"{file}: executor {match[1]} is not installed: pip install {package}")


def _plugin(executor: str) -> str:
    return f"snakemake_executor_plugin_{executor.replace('-', '_')}"


def is_looking(arguments: Sequence[str]) -> bool:
    """Whether Snakemake is only asked to show something."""
    return any(argument.startswith(LOOKING) for argument in arguments)


def profile(name: str) -> str:
    """What to pass as --profile: one of workflows/profiles by name, a folder, or a name that Snakemake knows.

    Raises
    ------
    ConfigError
        There is no such profile.
    """
    known = sorted(path.name for path in PROFILES.iterdir() if path.is_dir()) if PROFILES.is_dir() else []
    if name in known:
        return str(PROFILES / name)
    from snakemake.cli import get_profile_dir  # half a second, so only where the name is not one of ours

    if get_profile_dir(name) is None:
        raise ConfigError(f"hydra.launcher.profile={name}: no such profile{hint(name, known)}")
    return name
