"""Every command of README and the guide runs, or stands in the list with the reason why not.

The recipes are run by `test_recipes`. A run or a sweep is planned, and dry-run where it has options for
Snakemake, unless a later command of its page needs the results.
"""

import itertools
import re
import shlex
from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout
from tests.test_docs import COMMANDS, commands, name

PAGES = [page for page in COMMANDS if "recipes" not in page.parts]
RUN_WHOLE = ("docs/guide/data_export.md",)
"""Pages whose later commands read what the first one makes."""
NOT_RUN = {
    r"make ": "installs an environment, or takes minutes: CI runs `make lint`, `make test` and `make run`",
    r"python -m pip install": "changes the environment of the test",
    r"python -m pdb ": "waits for input",
    r"python -m tests\.(benchmarks|faults)": "takes from minutes to an hour",
    r"python -m tests\.search\.agents\.server": "a server: tests/end_to_end/test_llm.py starts it",
    r".*search=llm": "needs the endpoint of a language model: tests/end_to_end/test_llm.py",
    r".*profile[s/=]*slurm|kernelmill nodes": "needs a cluster: tests/execution/cluster",
    r".*tracking\.uri=": "needs a server: tests/track/stores",
    r".*(recorded/|benchmark_hub/)": "reads files that are not here: tests/end_to_end/test_replay.py",
    r".*\b(DIR|FILE|ID|NAME)\b": "a placeholder: tests/cli runs the command with a file",
    r".*search\.transfer\.winners": "reads the winners of an earlier run: tests/search/strategies",
    r"kernelmill (aa|code|report|bundle (show|ingest))": "reads the results of a run, or makes one",
    r".*hydra/sweeper=optuna": "makes a study: tests/execution/sweep/test_optuna_sweeper.py",
    r"kernelmill space export": "reads the results of a run: tests/end_to_end/test_replay.py exports its own",
    r"kernelmill runs": "reads tracked runs: tests/track/test_run_listing.py",
    r".*\bmy_module\b": "a module of the reader's: tests/execution/scaffolding",
    r"kernelmill mcp": "a server: tests/execution/agents starts it",
    r"kernelmill (leaderboard|judge runs/)": "reads submissions: tests/cli/test_leaderboard.py makes some",
    r"kernelmill judge (KernelBench|reference-kernels)": "reads other projects: tests/interop/problem_sets",
    r"kernelmill check --device|.* check.pyz": "takes minutes: tests/execution/device_check runs it",
    r"kernelmill store": "needs a shared store: tests/end_to_end/test_sharing.py",
    r"kernelmill ceilings h100|python -m pipeline\.measure\.device_readings cuda": "needs the device",
    r"kernelmill ceilings --": "measures for a minute; `kernelmill ceilings` is run",
    r".*search\.candidates\.folder|.*search=inductor": "tests/search runs it with its files",
}
"""Beginning of a command -> why it is not run here."""


def reason(words: list[str]) -> str | None:
    """Why a command is not run; None if it is."""
    line = shlex.join(words)
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, line)), None)


def dry(words: list[str]) -> list[str]:
    """The command, with a run or a sweep reduced to its plan or its DAG, and all variants checked quickly."""
    if words[0] == "snakemake":
        return [*words, "--dry-run"]
    if words[:2] in (["kernelmill", "run"], ["kernelmill", "sweep"]) and "-n" not in words:
        if words[1] == "run" and not any(word.startswith("-") for word in words):
            return ["kernelmill", "plan", *words[2:]]  # `test_workflow` makes the DAG of each experiment
        return [*words, "--dry-run"] if "--" in words else [*words, "--", "--dry-run"]
    if words[:2] == ["kernelmill", "verify"] and "--all" in words:
        return [*words, "--verify", "fast"]  # the races of every variant take a minute
    return words


def test_each_reason_is_needed() -> None:
    """A pattern that no command matches is removed."""
    lines = [shlex.join(words) for page in PAGES for words in commands(page)]
    unused = [pattern for pattern in NOT_RUN if not any(re.match(pattern, line) for line in lines)]
    assert not unused


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(reason(words) is None for words in commands(page))], ids=name
)
def test_commands_of_a_page(checkout: Checkout, page: Path) -> None:
    """Each ends with exit code 0, in a fresh copy of the project."""
    whole = name(page) in RUN_WHOLE
    for line in commands(page):
        if reason(line) is None:
            words = list(itertools.takewhile(lambda word: word != "|", line))  # not what reads the output
            run(checkout, words if whole else dry(words))


def run(checkout: Checkout, words: list[str]) -> None:
    """Run it as a user would, with what the test's environment has installed."""
    match words:
        case ["kernelmill", *rest]:
            checkout.module("pipeline", *rest)
        case ["snakemake", *rest]:
            checkout.module("snakemake", *rest)
        case ["python", "-m", module, *rest]:
            checkout.module(module, *rest)
        case _:
            raise AssertionError(f"add how to run it, or why not: {shlex.join(words)}")
