"""The adversarial candidates, what is expected of each, and how to have them judged.

A candidate is a file in `problems/<problem>/solutions`, or a patch against one of them (`patches`).
`python -m tests.adversarial.suite FOLDER` writes all of them as files.
"""

import csv
import functools
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tests.adversarial.patches import patched

HERE = Path(__file__).parent
PROBLEMS = HERE / "problems"
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Expected:
    """One line of expected.csv: a candidate, whether it is right, and the outcomes that name its fault."""

    problem: str
    solution: str
    label: str
    outcomes: frozenset[str]
    category: str
    description: str


@dataclass(frozen=True)
class Verdict:
    """What the judge's verdicts.csv says of a candidate."""

    outcome: str
    reason: str


Key = tuple[str, str]


@functools.cache
def expected() -> dict[Key, Expected]:
    """Every candidate of the suite by problem and solution."""
    with (HERE / "expected.csv").open(newline="") as file:
        rows = [
            Expected(**{**row, "outcomes": frozenset(row["outcomes"].split(";"))})
            for row in csv.DictReader(file)
        ]
    return {(row.problem, row.solution): row for row in rows}


def sources(problem: Path) -> dict[str, str]:
    """Name -> source of every candidate of a problem; AssertionError if a file and a patch share a name."""
    files = {path.stem: path.read_text() for path in (problem / "solutions").glob("*.py")}
    for path in problem.glob("*.diff"):
        found = patched(path)
        assert not found.keys() & files.keys(), f"{path}: also files: {sorted(found.keys() & files.keys())}"
        files |= found
    return files


def stage(keys: Collection[Key], folder: Path) -> None:
    """Write these candidates with their problems into a folder that the judge can be given."""
    for problem in dict.fromkeys(problem for problem, _ in keys):
        solutions = folder / problem / "solutions"
        solutions.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROBLEMS / problem / "problem.py", folder / problem / "problem.py")
        for name, source in sources(PROBLEMS / problem).items():
            if (problem, name) in keys:
                (solutions / f"{name}.py").write_text(source)


def judge(folder: Path, out: Path, *options: str) -> dict[Key, Verdict]:
    """Run `kernelmill judge` over a folder; its verdict on every candidate.

    AssertionError with the end of its output when it does not exit with 0.
    """
    command = [sys.executable, "-m", "pipeline", "judge", str(folder), "--out", str(out), *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-4000:]
    return read(out)


def read(path: Path) -> dict[Key, Verdict]:
    """The verdicts of a verdicts.csv."""
    with path.open(newline="") as file:
        return {
            (row["problem"], row["solution"].removesuffix(".py")): Verdict(row["outcome"], row["reason"])
            for row in csv.DictReader(file)
        }


def misjudged(verdicts: dict[Key, Verdict], keys: Collection[Key]) -> list[str]:
    """A line for every candidate whose outcome is not among those expected of it, or that has no verdict."""
    wanted = expected()
    lines = []
    for key in sorted(keys):
        verdict = verdicts.get(key, Verdict("missing", "no row in verdicts.csv"))
        if verdict.outcome not in wanted[key].outcomes:
            accepted = " or ".join(sorted(wanted[key].outcomes))
            lines.append(f"{'/'.join(key)}: {verdict.outcome}, expected {accepted}: {verdict.reason}")
    return lines


if __name__ == "__main__":
    stage(expected(), Path(sys.argv[1]))
