"""Failure is data: every way to go wrong ends as its outcome, and the run completes."""

import csv
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout

HERE = Path(__file__).parent
EXPECTED = {
    "0": {"passed"},
    "1": {"compile_error"},
    "2": {"crashed"},
    "3": {"timeout"},
    "4": {"out_of_memory"},
    "5": {"output_limit"},
    "6": {"unwritten_output"},
    "7": {"out_of_bounds"},
    "8": {"input_mutated", "crashed"},  # where inputs are mapped read-only, the write itself is caught
    "9": {"wrong_value"},
}
OVERRIDES = (
    "kernel=faulty workload=bert_base hardware=cpu optimization=full verify=fast profile=quick "
    "workload.dimensions.tokens=64 verify.time_limit=4 verify.memory_limit=268435456 "
    "profile.baselines=[eager] tracking=disabled"
)


def add_faulty_kernel(checkout: Checkout) -> None:
    """Add the kernel as a user would: one yaml and one folder."""
    folder = checkout.folder / "kernels" / "faulty"
    folder.mkdir()
    shutil.copy(HERE / "faulty.cpp", folder)
    (folder / "reference.py").write_text("def double(x):\n    return 2 * x\n")
    shutil.copy(HERE / "faulty.yaml", checkout.folder / "conf" / "kernel")


@pytest.mark.slow
def test_every_failure_is_an_outcome(checkout: Checkout) -> None:
    """Ten variants, nine of them broken: one run, ten right outcomes, logs that can be found."""
    add_faulty_kernel(checkout)
    checkout.snakemake("--config", f"overrides={OVERRIDES}")
    (table,) = (checkout.folder / "artifacts" / "aggregate").glob("*/variants.csv")
    rows = {row["tunable.FAULT"]: row for row in csv.DictReader(table.open())}
    assert set(rows) == set(EXPECTED)
    for fault, outcomes in EXPECTED.items():
        assert rows[fault]["outcome"] in outcomes, (fault, rows[fault]["outcome"], rows[fault]["reason"])
    for fault in ("1", "2", "3", "4", "5"):
        log = checkout.folder / "artifacts" / rows[fault]["log"]
        assert log.is_file(), f"the log of FAULT={fault} is not at {log}"
    assert "does not compile" in rows["1"]["reason"]
    (report,) = (checkout.folder / "artifacts" / "report").glob("*/report.html")
    assert "does not compile" in report.read_text()
