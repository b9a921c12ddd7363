"""What the stages would have found: failures at their stage, all samples, nothing invented."""

import statistics
from pathlib import Path

import pytest

from pipeline.interop import replay
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.verified import Verified
from pipeline.records.search.recorded_space import RecordedFile, RecordedResult

FILE = RecordedFile(path="a/b.json", digest="d", format="T4", device="Some GPU", implementation="toy")
LINE = "Some GPU, recorded in b.json (d)"
PASSED = RecordedResult(
    tunables={"block": 64},
    outcome=Outcome.PASSED,
    samples=(2.0, 1.0, 1.5, 1.25),
    median_seconds=1.375,
    joules=0.5,
    benchmark_seconds=4.0,
    framework_seconds=1.0,
)


def failed(outcome: Outcome) -> RecordedResult:
    """A failure as a file has it."""
    return RecordedResult(tunables={"block": 64}, outcome=outcome, reason="so it says")


@pytest.mark.parametrize(
    ("outcome", "stage"),
    [
        (Outcome.COMPILE_ERROR, "compile"),
        (Outcome.PRUNED, "compile"),
        (Outcome.LAUNCH_ERROR, "verify"),
        (Outcome.WRONG_VALUE, "verify"),
        (Outcome.TIMEOUT, "verify"),
        (Outcome.UNSTABLE_TIMING, "profile"),
    ],
)
def test_a_failure_stands_at_the_stage_that_finds_it(outcome: Outcome, stage: str, tmp_path: Path) -> None:
    """The stages before it pass, and the reason is the file's."""
    found = failed(outcome)
    results = {
        "compile": replay.compiled(found, FILE, tmp_path),
        "verify": replay.verified(found),
        "profile": replay.profiled(found, FILE, 0.95),
    }
    before = list(results)[: list(results).index(stage)]
    assert all(isinstance(results[each], Compiled | Verified) for each in before)
    assert results[stage] == Failure(outcome=outcome, reason="recorded: so it says")


def test_a_variant_without_a_record_has_an_outcome_of_its_own(tmp_path: Path) -> None:
    """And no number; so has one that passed without a time."""
    missing = replay.compiled(None, FILE, tmp_path)
    assert missing == Failure(outcome=Outcome.NOT_RECORDED, reason=f"no result of this variant: {LINE}")
    timeless = replay.profiled(RecordedResult(tunables={}, outcome=Outcome.PASSED), FILE, 0.95)
    assert isinstance(timeless, Failure) and timeless.outcome is Outcome.NOT_RECORDED


def test_all_samples_are_there() -> None:
    """Their median and its interval are those of our own measurements; the same at every look."""
    found = replay.profiled(PASSED, FILE, 0.95)
    assert isinstance(found, Profiled)
    assert found.timing.samples == PASSED.samples
    assert found.timing.median.value == statistics.median(PASSED.samples)
    assert 1.0 <= found.timing.median.low < found.timing.median.high <= 2.0
    assert found == replay.profiled(PASSED, FILE, 0.95)


def test_what_the_file_does_not_say_is_absent() -> None:
    """No baseline, so no speed-up; no ceiling, so no share of it; and it says whose measurement it is."""
    found = replay.profiled(PASSED, FILE, 0.95)
    assert isinstance(found, Profiled)
    assert found.comparisons == () and found.absent == ()
    assert found.ceilings is None and found.roofline_share is None and found.bound is None
    assert found.timing.first_call_seconds is None and found.timing.setup_seconds is None
    assert found.energy is not None and (found.energy.joules, found.energy.watts) == (0.5, None)
    assert found.recorded == LINE and found.device["name"] == "Some GPU"
    assert found.notes == ()  # nothing disturbed it, as far as anybody knows


def test_a_single_time_has_no_interval() -> None:
    """KTT's output has one duration: nobody knows how far to trust it."""
    found = replay.profiled(
        RecordedResult(tunables={}, outcome=Outcome.PASSED, seconds=2.0, median_seconds=2.0), FILE, 0.95
    )
    assert isinstance(found, Profiled)
    assert (found.timing.median.value, found.timing.median.confidence) == (2.0, 0.0)
    assert "one time and no samples" in found.notes[0]


def test_a_brief_measurement_has_the_first_samples() -> None:
    """As a search that screens would have seen them, for a share of the cost."""
    found = replay.profiled(PASSED, FILE, 0.95, share=0.5)
    assert isinstance(found, Profiled) and found.timing.samples == (2.0, 1.0)
    assert replay.spent_measuring(PASSED, 0.5) == 3.0
    assert replay.spent_measuring(PASSED) == 5.0


def test_the_artifact_is_the_record(tmp_path: Path) -> None:
    """Whoever looks for the binary finds what stands for it."""
    found = replay.compiled(PASSED, FILE, tmp_path)
    assert isinstance(found, Compiled) and found.facts.code_bytes is None
    assert '"median_seconds": 1.375' in (tmp_path / found.artifact).read_text()
