"""Judge every adversarial candidate and write docs/results/adversarial.md.

    python -m tests.adversarial.table [--verdicts verdicts.csv] [--verify standard]

With --verdicts the table is made from verdicts that are already there.
"""

import argparse
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

from tests.adversarial.suite import ROOT, Expected, Key, Verdict, expected, judge, read, stage
from tests.benchmarks.machine import where

TARGET = ROOT / "docs" / "results" / "adversarial.md"
INTRODUCTION = """# Wrong and correct candidates

Written by `python -m tests.adversarial.table`. The candidates are in `tests/adversarial/problems`, most of
them as patches of a correct solution; the expected outcomes in `tests/adversarial/expected.csv`. Rejecting
a wrong candidate is not enough: its outcome must be one of the expected ones, so that it names the fault.
"""


def main() -> None:
    """Judge all, or read the verdicts, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--verdicts", type=Path)
    parser.add_argument("--verify", default="standard")
    options = parser.parse_args()
    if options.verdicts is not None:
        verdicts, origin = read(options.verdicts), f"From the verdicts in {options.verdicts.name}."
    else:
        with tempfile.TemporaryDirectory() as folder:
            stage(expected(), Path(folder) / "problems")
            verdicts = judge(
                Path(folder) / "problems", Path(folder) / "verdicts.csv", "--verify", options.verify
            )
        origin = where(("torch", "triton"))
    TARGET.write_text(document(expected(), verdicts, origin))
    print(f"{TARGET.relative_to(ROOT)}: {summary(expected(), verdicts)}")


def document(wanted: dict[Key, Expected], verdicts: dict[Key, Verdict], origin: str) -> str:
    """The whole page in Markdown."""
    parts = [INTRODUCTION, origin + "\n", summary(wanted, verdicts) + ".\n"]
    for label, title in (("wrong", "Wrong or cheating"), ("right", "Correct")):
        parts.append(f"## {title}\n\n" + categories(label, wanted, verdicts))
        parts.append(table(label, wanted, verdicts))
    return "\n".join(parts)


def summary(wanted: dict[Key, Expected], verdicts: dict[Key, Verdict]) -> str:
    """One sentence: how many of each kind were judged as expected."""
    said = []
    for label, verb in (
        ("wrong", "wrong candidates rejected for the right reason"),
        ("right", "correct ones accepted"),
    ):
        keys = [key for key, row in wanted.items() if row.label == label]
        good = sum(agrees(wanted[key], verdicts.get(key)) for key in keys)
        said.append(f"{good} of {len(keys)} {verb}")
    return ", ".join(said)


def agrees(row: Expected, verdict: Verdict | None) -> bool:
    """Whether the outcome is one of those expected."""
    return verdict is not None and verdict.outcome in row.outcomes


def categories(label: str, wanted: dict[Key, Expected], verdicts: dict[Key, Verdict]) -> str:
    """A table of the categories: how many candidates, how many judged as expected."""
    rows = {key: row for key, row in wanted.items() if row.label == label}
    total = Counter(row.category for row in rows.values())
    good = Counter(row.category for key, row in rows.items() if agrees(row, verdicts.get(key)))
    lines = ["| category | candidates | as expected |", "|---|---:|---:|"]
    lines += [f"| {name} | {count} | {good[name]} |" for name, count in sorted(total.items())]
    return "\n".join(lines) + "\n"


def table(label: str, wanted: dict[Key, Expected], verdicts: dict[Key, Verdict]) -> str:
    """A table of the candidates; an outcome that was not expected is set in bold."""
    lines = [
        "| candidate | category | what it does | expected | outcome | reason |",
        "|---|---|---|---|---|---|",
    ]
    for key, row in sorted(wanted.items()):
        if row.label != label:
            continue
        verdict = verdicts.get(key, Verdict("not judged", ""))
        outcome = verdict.outcome if agrees(row, verdict) else f"**{verdict.outcome}**"
        cells = ["/".join(key), row.category, row.description, ", ".join(sorted(row.outcomes)), outcome]
        lines.append("| " + " | ".join([*map(escaped, cells), escaped(neutral(verdict.reason))]) + " |")
    return "\n".join(lines) + "\n"


def neutral(text: str) -> str:
    """Without the folders of whoever made the table."""
    for folder, name in ((sysconfig.get_path("purelib"), "<environment>"), (str(ROOT), "<project>")):
        text = text.replace(folder, name)
    return text


def escaped(text: str) -> str:
    """Text that cannot break out of its cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    main()
