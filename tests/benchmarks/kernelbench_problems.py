"""What judge finds out about the problems of KernelBench, as docs/results/kernelbench.md.

    python -m tests.benchmarks.kernelbench_problems CHECKOUT [--seconds 1500] [--cores 1]
    python -m tests.benchmarks.kernelbench_problems --table verdicts.csv

Runs `kernelmill judge CHECKOUT --copy-of-model` for at most so many seconds. What was judged is kept, so that
the next run continues; the page says how many problems have no verdict yet.
"""

import argparse
import collections
import csv
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.local_machine import read_machine
from tests.paths import ROOT

TARGET = ROOT / "docs" / "results" / "kernelbench.md"
PROBLEMS = {"level1": 100, "level2": 100, "level3": 50, "level4": 20}
INTRODUCTION = """# Problems of KernelBench

Written by `python -m tests.benchmarks.kernelbench_problems` on {machine}. Each problem was judged with
[a copy of its own `Model`](../guide/problem_sets.md#copies-of-model) as the only candidate: what is wrong
then is the problem, or this machine. *Reduced*: the declared sizes were too large for it, and smaller ones
were judged. *Weak*: trivial answers pass a tolerance of 0.01 on the declared sizes. *Degenerate*: the output
hardly varies, or does not depend on the inputs or weights. *No verdict*: not judged yet, the command was
stopped before. Seconds are those of the judge and the candidate together, memory is the largest peak of a
candidate's process.

"""

Row = dict[str, str]


def main() -> None:
    """Judge what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", nargs="?", type=Path, help="of KernelBench")
    parser.add_argument("--seconds", type=float, default=1500.0, help="after which judging is stopped")
    parser.add_argument("--cores", default="1", help="of judge")
    parser.add_argument(
        "--table", type=Path, action="append", default=[], help="a table that judge wrote before"
    )
    options = parser.parse_args()
    rows = [row for table in options.table for row in read(table)]
    if options.checkout is not None:
        rows += judged(options.checkout, options.seconds, options.cores)
    facts = read_machine().cpu.facts
    machine = f"{facts['cores']} cores of a machine with {facts['model']}"
    TARGET.write_text(INTRODUCTION.format(machine=machine) + page(rows))
    print(TARGET.relative_to(ROOT))


def judged(checkout: Path, seconds: float, cores: str) -> list[Row]:
    """Verdicts of all problems that could be judged in time."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "verdicts.csv"
        command = ["judge", str(checkout), "--copy-of-model", "--out", str(table), "--cores", cores]
        process = subprocess.Popen([sys.executable, "-m", "pipeline", *command], cwd=ROOT)
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
        return read(table)


def read(table: Path) -> list[Row]:
    """The rows; a table that is missing is an error, not a page that says nothing was judged."""
    with table.open(newline="") as stream:
        return list(csv.DictReader(stream))


def page(rows: Sequence[Row]) -> str:
    """Counts by level, and a row for each problem about which there is something to say."""
    found = {row["problem"]: row for row in rows if row["outcome"] != "not_judged"}
    lines = [
        "| level | problems | passed | reduced | weak | degenerate | failing | no verdict "
        "| seconds | memory |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for level, count in PROBLEMS.items():
        own = [row for name, row in found.items() if name.startswith(f"{level}/")]
        outcomes = collections.Counter(row["outcome"] for row in own)
        good = outcomes["passed"], outcomes["passed_reduced"]
        weak = sum(bool(notes(row, "weakly_checked: ")) for row in own)
        degenerate = sum(bool(notes(row, "degenerate problem: ")) for row in own)
        seconds = sum(float(row["seconds"] or 0) for row in own)
        memory = max((int(row.get("peak_memory") or 0) for row in own), default=0) / 2**30
        cells = [*good, weak, degenerate, len(own) - sum(good), count - len(own)]
        cells += [f"{seconds:.0f}", f"{memory:.1f} GiB"]
        lines.append(f"| {level} | {count} | {' | '.join(str(cell) for cell in cells)} |")
    lines += ["", "## Findings", "", "| problem | outcome | weak or degenerate | reason | seconds |"]
    lines.append("|---|---|---|---|---:|")
    for name, row in sorted(found.items(), key=lambda each: _order(each[0])):
        said = notes(row, "weakly_checked: ") + notes(row, "degenerate problem: ")
        if said or row["outcome"] != "passed":
            cells = [name, f"`{row['outcome']}`", "; ".join(said), row["reason"], row["seconds"]]
            lines.append(f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def notes(row: Row, kind: str) -> list[str]:
    """Of one kind, without its name."""
    return [note.removeprefix(kind) for note in row["notes"].split("; ") if note.startswith(kind)]


def _order(name: str) -> tuple[str, int, str]:
    level, _, problem = name.partition("/")
    number = problem.partition("_")[0]
    return level, int(number) if number.isdecimal() else 0, problem


if __name__ == "__main__":
    main()
