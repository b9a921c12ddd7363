"""A measuring child in the hands of its coordinator: its turns, its clock, and how it can end."""

import time
from pathlib import Path

import pytest

from pipeline.measure.hosting.measuring_messages import Ran
from pipeline.measure.hosting.process_handle import LONGEST_GAP, SERVER_CALLS, MemberGone, gaps_of
from pipeline.measure.hosting.timed_batch import credible_lead, settle_seconds
from pipeline.records.outcome import Outcome
from tests.measure.problems import SETTINGS, member, settings

pytestmark = pytest.mark.alone


def test_a_batch(tmp_path: Path) -> None:
    """Loaded, calibrated to the batch's length, timed by two clocks that agree."""
    hosted = member("plain", tmp_path)
    loaded = hosted.load(1, SETTINGS)
    batch = hosted.batch(2)
    hosted.stop()
    assert loaded.first_call_seconds > 0
    assert hosted.calls > 1
    assert batch.calls == hosted.calls
    assert 0 < batch.per_call < 0.01
    assert 0 <= batch.unseen < 0.5


def test_nothing_runs_between_turns(tmp_path: Path) -> None:
    """A thread that burns a core in the background is stopped with its process while others are timed."""
    hosted = member("burning", tmp_path)
    hosted.load(1, SETTINGS)
    hosted.batch(2)
    before = hosted.cpu_seconds()
    time.sleep(0.3)
    between = hosted.cpu_seconds() - before
    hosted.stop()
    assert before > 0
    assert between <= 0.02


@pytest.mark.parametrize(
    ("name", "outcome", "reason"),
    [
        ("refusing", Outcome.LAUNCH_ERROR, "ValueError: no such size"),
        (
            "not_compiling",
            Outcome.LAUNCH_ERROR,
            "RuntimeError: x.cpp:1:10: fatal error: Python.h: No such file",
        ),
        ("crashing", Outcome.CRASHED, "SIGSEGV"),
        ("hanging", Outcome.TIMEOUT, "2 s"),
    ],
)
def test_endings(tmp_path: Path, name: str, outcome: Outcome, reason: str) -> None:
    """Each way to fail is told apart, in one line."""
    hosted = member(name, tmp_path, seconds=2.0 if name == "hanging" else 20.0)
    with pytest.raises(MemberGone) as gone:
        hosted.load(1, SETTINGS)
    assert gone.value.outcome is outcome
    assert reason in gone.value.reason
    assert "\n" not in gone.value.reason


def test_the_traceback_is_kept(tmp_path: Path) -> None:
    """What a callable raised can be read in its log."""
    hosted = member("refusing", tmp_path)
    with pytest.raises(MemberGone):
        hosted.load(1, SETTINGS)
    assert "callables.py" in (tmp_path / "candidate.txt").read_text()


def test_server(tmp_path: Path) -> None:
    """Single calls after idle gaps, which neither its clock nor ours counts as the calls' time."""
    hosted = member("plain", tmp_path)
    hosted.load(1, settings(mode="server", idle_seconds=0.01))
    start = time.perf_counter()
    batch = hosted.batch(2)
    outside = time.perf_counter() - start
    hosted.stop()
    assert batch.calls == len(batch.latencies) == SERVER_CALLS
    assert batch.seconds == pytest.approx(sum(batch.latencies))
    gaps = gaps_of(2, SERVER_CALLS, 0.01)
    assert outside > sum(gaps)
    assert batch.unseen < outside - sum(gaps)


def test_lead_of_a_true_clock() -> None:
    """Its calls may be half as slow again as the timed ones: they wake the callable up."""
    assert credible_lead(Ran(seconds=4.0, lead_seconds=0.75), share=0.125, queued=0.0) == 0.75


def test_lead_that_waited_for_a_core() -> None:
    """What the kernel's account says of waiting is no lie of the clock."""
    assert credible_lead(Ran(seconds=2.0, lead_seconds=3.0), share=0.125, queued=2.5) == 3.0


def test_lead_of_a_false_clock() -> None:
    """Time that was shifted into it is not believed, and stays to be explained."""
    assert credible_lead(Ran(seconds=2.0, lead_seconds=2.5), share=0.125, queued=0.0) == 0.5
    assert credible_lead(Ran(seconds=4.0, lead_seconds=0.0), share=0.0, queued=0.0) == 0.0


def test_gaps() -> None:
    """Equal for equal seeds, of the mean that is asked for, never endless."""
    gaps = gaps_of(1, 4000, 0.01)
    assert gaps == gaps_of(1, 4000, 0.01)
    assert gaps != gaps_of(2, 4000, 0.01)
    assert 0.009 < sum(gaps) / len(gaps) < 0.011
    assert max(gaps) == LONGEST_GAP * 0.01


def test_warm_up_waits_for_a_time_that_falls(tmp_path: Path) -> None:
    """Calls that become faster for a while are called until they do not any more."""
    hosted = member("warming", tmp_path)
    hosted.load(1, settings(warmup_seconds_at_most=10.0, batch_seconds=0.02))
    hosted.stop()
    assert hosted.calibrated is not None
    assert hosted.calibrated.drift is None
    assert hosted.calibrated.warmup_seconds > 0.5
    assert hosted.calls > 1, "counted again: one was as long as a batch at first"
    assert hosted.call_seconds > 0


def test_warm_up_ends(tmp_path: Path) -> None:
    """Where the time goes on falling the warm-up ends, and says by how much it fell at last."""
    hosted = member("warming", tmp_path)
    hosted.load(1, settings(warmup_seconds_at_most=0.05, batch_seconds=0.005))
    hosted.stop()
    assert hosted.calibrated is not None
    assert hosted.calibrated.drift is not None
    assert hosted.calibrated.drift < 0


@pytest.mark.parametrize(
    ("call", "alone", "expected"),
    [(1e-5, False, 1e-3), (1e-5, True, 5e-4), (1e-6, False, 5e-4), (1e-3, False, 0.01), (0.06, True, None)],
)
def test_untimed_calls_before_a_batch(call: float, alone: bool, expected: float | None) -> None:
    """A hundred within bounds where others had the device, the least where nobody had, none of long ones."""
    assert settle_seconds(call, alone=alone) == (None if expected is None else pytest.approx(expected))
