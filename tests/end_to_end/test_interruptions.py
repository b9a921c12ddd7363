"""Killed at any moment, the next run finishes the rest; two runs at once do not disturb each other."""

import os
import signal
import time

import pytest

from tests.end_to_end.checkout import Checkout

TASK = (
    "overrides=kernel=softmax workload=awkward hardware=cpu optimization=full "
    "search=random verify=fast profile=quick profile.baselines=[eager] tracking=disabled"
)
OVERRIDES = f"{TASK} search.variants_per_round=8"  # for so many, GCC compiles the system headers once
FEW = f"{TASK} search.variants_per_round=2"


@pytest.mark.slow
def test_kill_and_go_on(checkout: Checkout) -> None:
    """kill -9 in the middle of a stage: finished variants stay, the rest is done by the next run."""
    run = checkout.start("--config", OVERRIDES)
    deadline = time.monotonic() + 120
    while len(checkout.entries("verify")) < 3:
        assert run.poll() is None and time.monotonic() < deadline, run.communicate()[0]
        time.sleep(0.02)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    time.sleep(0.5)  # what the dead run had started is killed by its keepers
    finished = {name: checkout.entries(name) for name in ("compile", "verify", "profile")}
    checkout.snakemake("--config", OVERRIDES)
    for name, entries in finished.items():
        after = checkout.entries(name)
        assert all(after.get(entry) == time for entry, time in entries.items()), f"{name}: a result was lost"
    counts = {name: len(checkout.entries(name)) for name in finished}
    assert counts["compile"] > 3
    litter = [path for path in (checkout.folder / "artifacts").rglob(".*") if path.is_dir()]
    assert len(litter) <= 4, f"left behind: {litter}"  # at most what was being written when the kill came
    assert "Nothing to be done" in checkout.snakemake("--config", OVERRIDES)


@pytest.mark.slow
def test_two_runs_at_once(checkout: Checkout) -> None:
    """The second run waits for the first and says so; both end well, and agree."""
    first = checkout.start("--config", FEW)
    second = checkout.start("--config", FEW)
    outputs = [run.communicate(timeout=200)[0] for run in (first, second)]
    assert first.returncode == 0, outputs[0]
    assert second.returncode == 0, outputs[1]
    assert any("waiting" in output for output in outputs), outputs
    assert "Nothing to be done" in checkout.snakemake("--config", FEW)
