"""A kernel that skips half of its work is never a winner: the gate rejects it, however fast it is."""

import csv

import pytest

from tests.end_to_end.checkout import Checkout

OVERRIDES = (
    "kernel=matmul workload=bert_base hardware=cpu optimization=defaults optimization.free=[WORK] "
    "optimization.implementations=[cpp] verify=fast profile=quick profile.baselines=[eager] tracking=disabled"
)
WHOLE, HALF_OF_THE_ROWS, HALF_OF_K = "0", "1", "2"


def leave_work_out(checkout: Checkout) -> None:
    """A tunable of matmul that says which half is left out."""
    checkout.edit(
        "kernels/matmul/matmul.cpp",
        "multiply({a, b, nullptr, c, M, N, K, stride_a, stride_b})",
        "multiply({a, b, nullptr, c, WORK == 1 ? M / 2 : M, N, WORK == 2 ? K / 2 : K, stride_a, stride_b})",
    )
    checkout.edit(
        "conf/kernel/matmul.yaml",
        "      PREFETCH:\n",
        "      WORK:\n        values: [0, 1, 2]\n        default: 0\n      PREFETCH:\n",
    )


@pytest.mark.slow
@pytest.mark.alone
def test_half_of_a_product_is_no_winner(checkout: Checkout) -> None:
    """Half of the rows is not written, half of K is another value; neither gets a time, so the whole wins."""
    leave_work_out(checkout)
    checkout.snakemake("--config", f"overrides={OVERRIDES}")
    (folder,) = (checkout.folder / "artifacts" / "aggregate").iterdir()
    rows = {row["tunable.WORK"]: row for row in csv.DictReader((folder / "variants.csv").open())}
    assert rows[WHOLE]["outcome"] == "passed" and rows[WHOLE]["median_seconds"]
    for half, outcomes in (
        (HALF_OF_THE_ROWS, {"unwritten_output"}),
        (HALF_OF_K, {"wrong_value"}),
    ):
        assert rows[half]["stage"] == "verify"
        assert rows[half]["outcome"] in outcomes, rows[half]["reason"]
        assert rows[half]["median_seconds"] == rows[half]["profile_outcome"] == ""
    (winner,) = csv.DictReader((folder / "winners.csv").open())
    assert winner["status"] == "measured"
    assert winner["variant"] == rows[WHOLE]["variant"]
    assert winner["measured"] == "1"
