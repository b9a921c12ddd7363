"""What a run prints at its end: tables of searches and of static facts."""

import csv
from pathlib import Path

from pipeline.execution.run_results import RunResult, result_text

TASK = {"kernel": "softmax", "workload": "w", "hardware": "h100"}


def ended(folder: Path, name: str, *rows: dict[str, str]) -> str:
    """The text of a run that left one table."""
    with (folder / name).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return result_text(
        RunResult(
            experiment="e", variants=1, passed=1, failures=(), failed_jobs=(), summary=None, report=None,
            tables=str(folder), tracking=None,
        )
    )  # fmt: skip


def test_searches_that_differ_in_their_optimization(tmp_path: Path) -> None:
    """Its column tells their rows apart."""
    counts = dict.fromkeys(("proposed", "failed", "measured"), "1") | {"search": "grid", "best_seconds": ""}
    rows = [
        TASK | counts | {"task": name, "optimization": name, "round": number}
        for name in ("essential", "full")
        for number in ("0", "1")
    ]
    text = ended(tmp_path, "rounds.csv", *rows)
    assert [line.split()[3] for line in text.splitlines() if "softmax" in line] == [
        *("essential", "essential"),
        *("full", "full"),
    ]


def test_static_facts_where_nothing_was_measured(tmp_path: Path) -> None:
    """One line for each GPU target, in the units of the report; other choices and CPUs are left out."""
    facts = {
        "implementation": "triton",
        "registers": "26",
        "spills": "0",
        "shared_memory": "16",
        "threads_per_block": "128",
        "estimate_occupancy": "0.4375",
        "estimate_occupancy_limiter": "registers",
        "matrix_instructions": "",
        "code_bytes": "4736",
    }
    choices = (("cuda", "default"), ("cuda", "best occupancy"), ("cpu", "default"))
    rows = [TASK | facts | {"kind": kind, "choice": choice} for kind, choice in choices]
    (line,) = [each for each in ended(tmp_path, "static_facts.csv", *rows).splitlines() if "triton" in each]
    assert line.split()[4:] == ["26", "0", "16", "128", "44%", "registers", "-", "4,736"]
