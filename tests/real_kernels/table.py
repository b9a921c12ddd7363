"""Judge kernels of packages that people use, and write docs/results/real_kernels.md.

    pip install --no-deps -r tests/real_kernels/requirements.txt
    python -m tests.real_kernels.table [--verdicts verdicts.csv]

`kernels.csv` names each problem's package, operator and function. Its column `fault` says what is wrong with
a kernel, or why it cannot run without a device, where it is not accepted. With --verdicts the page is made
from verdicts that are already there.
"""

import argparse
import csv
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.adversarial.suite import ROOT, Key, Verdict, judge, read
from tests.benchmarks.machine import where

HERE = Path(__file__).parent
PROBLEMS, KERNELS = HERE / "problems", HERE / "kernels.csv"
TARGET = ROOT / "docs" / "results" / "real_kernels.md"
ACCEPTED = ("passed", "passed_reduced")
LONGEST = 160  # characters of a reason
INTRODUCTION = """# Kernels of packages

Written by `python -m tests.real_kernels.table`, with the packages of `tests/real_kernels/requirements.txt`.
Each problem states in plain PyTorch what a function of a package computes; the candidate imports the package
and calls the function. All were judged with `--hardware h200` on a machine without a GPU: Triton kernels ran
in its interpreter and were compiled for the H200.
"""


@dataclass(frozen=True)
class Kernel:
    """One row of kernels.csv."""

    package: str
    operator: str
    function: str
    fault: str

    @property
    def needs_device(self) -> bool:
        """Whether nothing is wrong with it but that it cannot run here."""
        return self.fault.startswith("device: ")


def kernels() -> dict[Key, Kernel]:
    """All rows, by problem and solution."""
    with KERNELS.open(newline="") as file:
        return {
            (row["problem"], row["package"]): Kernel(
                row["package"], row["operator"], row["function"], row["fault"]
            )
            for row in csv.DictReader(file)
        }


def main() -> None:
    """Judge all, or read the verdicts, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--verdicts", type=Path)
    options = parser.parse_args()
    if options.verdicts is not None:
        verdicts, origin = read(options.verdicts), f"From the verdicts in {options.verdicts.name}."
    else:
        with tempfile.TemporaryDirectory() as folder:
            verdicts = judge(PROBLEMS, Path(folder) / "verdicts.csv", "--hardware", "h200")
        origin = where(("torch", "triton"))
    TARGET.write_text(document(kernels(), verdicts, origin))
    print(f"{TARGET.relative_to(ROOT)}: {summary(kernels(), verdicts)}")


def document(rows: Mapping[Key, Kernel], verdicts: Mapping[Key, Verdict], origin: str) -> str:
    """The whole page in Markdown."""
    parts = [INTRODUCTION, origin + "\n", f"{summary(rows, verdicts)}.\n", packages(rows, verdicts)]
    judged = {key: row for key, row in rows.items() if key in verdicts}
    refused = {key: row for key, row in judged.items() if not accepted(verdicts[key])}
    parts.append("## Not accepted\n\n" + refusals(refused, verdicts))
    parts.append("## Accepted\n\n" + names({key: row for key, row in judged.items() if key not in refused}))
    if len(judged) < len(rows):
        parts.append("## Not judged\n\n" + names({key: rows[key] for key in rows if key not in judged}))
    return "\n".join(parts)


def accepted(verdict: Verdict | None) -> bool:
    """Whether it is right as far as it was tried."""
    return verdict is not None and verdict.outcome in ACCEPTED


def summary(rows: Mapping[Key, Kernel], verdicts: Mapping[Key, Verdict]) -> str:
    """One sentence."""
    good = sum(accepted(verdicts.get(key)) for key in rows)
    refused = [row for key, row in rows.items() if key in verdicts and not accepted(verdicts[key])]
    absent_verdicts = len(rows.keys() - verdicts.keys())
    rest = f"; {absent_verdicts} were not judged in this run" if absent_verdicts else ""
    absent = sum(row.needs_device for row in refused)
    wrong = sum(bool(row.fault) and not row.needs_device for row in refused)
    names = {row.package for row in rows.values()}
    operators = {row.operator for row in rows.values()}
    return (
        f"{len(rows)} kernels of {len(names)} packages for {len(operators)} operators: {good} accepted,"
        f" {wrong} refused for a fault of the kernel, {absent} that need a device,"
        f" {len(refused) - absent - wrong} refused without a known fault{rest}"
    )


def packages(rows: Mapping[Key, Kernel], verdicts: Mapping[Key, Verdict]) -> str:
    """A line for each package."""
    lines = [
        "| package | kernels | accepted | faults | need a device | unexplained | not judged |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in sorted({row.package for row in rows.values()}):
        own = {key: row for key, row in rows.items() if row.package == name}
        judged = [(key, row) for key, row in own.items() if key in verdicts]
        refused = [row for key, row in judged if not accepted(verdicts[key])]
        absent = sum(row.needs_device for row in refused)
        wrong = sum(bool(row.fault) and not row.needs_device for row in refused)
        lines.append(
            f"| {name} | {len(own)} | {len(judged) - len(refused)} | {wrong} | {absent} |"
            f" {len(refused) - absent - wrong} | {len(own) - len(judged)} |"
        )
    return "\n".join(lines) + "\n"


def refusals(rows: Mapping[Key, Kernel], verdicts: Mapping[Key, Verdict]) -> str:
    """What was found, and why it is so."""
    lines = ["| problem | function | verdict | cause |", "|---|---|---|---|"]
    for key, row in rows.items():
        verdict = verdicts[key]
        reason = re.sub(r" \([^()]*seed \d+\)", "", verdict.reason)
        reason = reason if len(reason) <= LONGEST else reason[: LONGEST - 1] + "…"
        text = f"`{verdict.outcome}`: {reason}".replace("|", "\\|")
        cause = row.fault.removeprefix("device: ") or "not known"
        lines.append(f"| {key[0]} | `{row.function}` | {text} | {cause} |")
    return "\n".join(lines) + "\n"


def names(rows: Mapping[Key, Kernel]) -> str:
    """Of what was not refused."""
    lines = ["| package | operator | function | problem |", "|---|---|---|---|"]
    lines += [
        f"| {row.package} | {row.operator} | `{row.function}` | {key[0]} |" for key, row in rows.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
