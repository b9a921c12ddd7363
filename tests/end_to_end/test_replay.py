"""Our own results, exported and replayed: the round trip keeps every median."""

import csv
import json
from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout

SEARCH = ("kernel=softmax", "workload=bert_base", "optimization=full", "tracking=disabled")


def medians(checkout: Checkout, hardware: str) -> dict[str, float]:
    """Configuration -> median seconds of what passed on a target."""
    found: dict[str, float] = {}
    for path in (checkout.folder / "artifacts" / "aggregate").glob("*/variants.csv"):
        with path.open(newline="") as file:
            found |= {
                row["configuration"]: float(row["median_seconds"])
                for row in csv.DictReader(file)
                if row["outcome"] == "passed" and row["hardware"] == hardware
            }
    return found


@pytest.mark.slow
@pytest.mark.alone
def test_results_of_this_machine_replay(tmp_path: Path) -> None:
    """softmax on the CPU, exported as T4, and the same search space on hardware=recorded."""
    checkout = Checkout(tmp_path / "c")
    checkout.module(
        "pipeline",
        "run",
        *(*SEARCH, "hardware=cpu", "search=random", "search.variants_per_round=4"),
        *("profile=quick", "profile.baselines=[]", "optimization.implementations=[cpp]"),
    )
    measured = medians(checkout, "cpu")
    assert len(measured) >= 3
    checkout.module("pipeline", "space", "export", "--out", "t4")
    (path,) = (checkout.folder / "t4").rglob("softmax-cpp-*_T4.json")
    assert json.loads(path.read_text())["metadata"]["problem"] == [1536, 128]
    text = checkout.module(
        "pipeline",
        "run",
        *SEARCH,
        "hardware=recorded",
        f"hardware.recorded={path.relative_to(checkout.folder)}",
        "search=grid",
    )
    assert "recorded measurements, not made here: " in text
    replayed = medians(checkout, "recorded")
    assert replayed == pytest.approx(measured)
