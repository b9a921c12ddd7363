"""A real measurement or verdict cannot be written down without what it always has; a recorded one can."""

import time
from typing import Any

import msgspec
import pytest

from pipeline.interop.dataset.row_schema import Measurement, Verification
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.provenance import Provenance
from pipeline.records.record import from_json, to_json
from pipeline.records.results.aggregated import Cell, Winner
from pipeline.records.results.profiled import (
    ConfidenceInterval,
    Energy,
    Profiled,
    ProfileOutput,
    ProfileRecord,
    ReferenceTime,
    Screening,
    Timing,
)
from pipeline.records.results.verified import Verified, VerifyRecord
from tests.execution.gym.made_up import profiled
from tests.records.test_record import VARIANT

REAL = profiled(low=1.1, value=1.2, high=1.3, seconds=1e-5)
ONLY = ConfidenceInterval(value=1e-5, low=1e-5, high=1e-5, confidence=0.95)
ELSEWHERE = "A100, recorded in a.json (0)"
RECORDED = Profiled(
    timing=Timing(samples=(1e-5,), median=ONLY), comparisons=(), recorded=ELSEWHERE, device={"name": "A100"}
)
MADE = Provenance(created="2026-01-01T00:00:00+00:00", host="h", toolchain={}, code="c", git=None)
COUNTED = Energy(joules=1.0, watts=2.0, seconds=0.5, calls=10, updates=5, source="nvml")
SCREENED = Failure(outcome=Outcome.SCREENED, reason="brief")
replace = msgspec.structs.replace


def record(result: Profiled | Failure, **more: Any) -> ProfileRecord:
    """One variant's."""
    return ProfileRecord(variant=VARIANT, entry="e", result=result, seconds=1.0, provenance=MADE, **more)


def judged(result: Verified | Failure, where: str) -> VerifyRecord:
    """One variant's."""
    return VerifyRecord(
        variant=VARIANT,
        entry="e",
        result=result,
        where=where,  # type: ignore[arg-type]
        checks=(),
        shapes=(),
        seeds=(),
        seconds=1.0,
        provenance=MADE,
    )


@pytest.mark.parametrize("field", ["ceilings", "roofline_share", "bound", "flops", "bytes"])
def test_a_measurement_has_its_roofline(field: str) -> None:
    """Whichever is left out is named."""
    with pytest.raises(ValueError, match=f"^a measurement lacks {field}: only a recorded one may be without"):
        replace(REAL, **{field: None})


@pytest.mark.parametrize("field", ["ceilings", "roofline_share", "bound"])
def test_a_recorded_measurement_has_none(field: str) -> None:
    """No file of recorded measurements tells it: it would be made up."""
    with pytest.raises(ValueError, match=f"recorded elsewhere has {field}: expected none"):
        replace(RECORDED, **{field: getattr(REAL, field)})


@pytest.mark.parametrize("field", ["calls_per_batch", "setup_seconds", "first_call_seconds"])
def test_half_a_timing(field: str) -> None:
    """A timing has all that stands beside its samples, or nothing of it."""
    with pytest.raises(ValueError, match=f"^a timing lacks {field}: only a recorded one may be without"):
        replace(REAL.timing, **{field: None})
    with pytest.raises(ValueError, match="^a timing lacks "):
        replace(RECORDED.timing, **{field: 1})


def test_a_timing_is_of_its_measurements_origin() -> None:
    """Neither the candidate's, nor a baseline's, nor that of a brief measurement can be of another one."""
    lacks = (
        "^the timing of a measurement lacks calls_per_batch, setup_seconds, first_call_seconds: only a rec"
    )
    with pytest.raises(ValueError, match=lacks):
        replace(REAL, timing=RECORDED.timing)
    (other,) = REAL.comparisons
    with pytest.raises(ValueError, match=lacks):
        replace(REAL, comparisons=(replace(other, timing=RECORDED.timing),))
    with pytest.raises(
        ValueError, match="the timing of a measurement that was recorded elsewhere has calls_"
    ):
        replace(RECORDED, timing=REAL.timing)
    with pytest.raises(ValueError, match="^the timing of a brief measurement lacks calls_per_batch"):
        Screening(share=0.1, timing=RECORDED.timing, time=REAL.time)
    with pytest.raises(
        ValueError, match="of a brief measurement that was recorded elsewhere has calls_per_b"
    ):
        Screening(share=0.1, timing=REAL.timing, time=REAL.time, recorded=ELSEWHERE)


@pytest.mark.parametrize("field", ["watts", "seconds", "calls", "updates"])
def test_energy_of_a_counter(field: str) -> None:
    """It says how finely it was seen; a file's figure says nothing of it."""
    with pytest.raises(ValueError, match=f"^an energy that nvml measured lacks {field}: only a recorded one"):
        replace(COUNTED, **{field: None})
    with pytest.raises(ValueError, match=f"an energy that was recorded elsewhere has {field}: expected none"):
        Energy(joules=1.0, source="recorded", **{field: 1})


def test_energy_is_of_its_measurements_origin() -> None:
    """A file's figure is no counter's."""
    told = Energy(joules=1.0, source="recorded")
    assert replace(RECORDED, energy=told).energy == told
    assert replace(REAL, energy=COUNTED).energy == COUNTED
    with pytest.raises(ValueError, match="a measurement made here has its energy from 'recorded'"):
        replace(REAL, energy=told)
    with pytest.raises(ValueError, match="a measurement recorded elsewhere has its energy from 'nvml'"):
        replace(RECORDED, energy=COUNTED)


def test_a_reference_is_a_baseline_that_was_measured() -> None:
    """A time cannot be reduced by a baseline that did not run."""
    with pytest.raises(ValueError, match="a reference to compile, which was not measured"):
        replace(REAL, reference=ReferenceTime(baseline="compile", seconds=1.0))
    with pytest.raises(ValueError, match="expected more than 0"):
        ReferenceTime(baseline="eager", seconds=0.0)


def test_time_is_the_ratio_to_the_baseline_times_its_reference() -> None:
    """A slow phase meets both and cancels; time times speed-up is the time of the baseline."""
    (entry,) = REAL.comparisons
    middle = REAL.timing.median.value
    ratio = ConfidenceInterval(value=2.0, low=1.9, high=2.1, confidence=0.95)
    slow = replace(entry, speedup=ratio, timing=replace(entry.timing, median=ratio.scaled(middle)))
    found = replace(
        REAL, comparisons=(slow,), reference=ReferenceTime(baseline=entry.baseline, seconds=middle / 2)
    )
    assert found.time.value == pytest.approx(middle / 4)
    assert found.drift == pytest.approx(4)
    assert found.baseline_time(slow).value == pytest.approx(found.time.value * ratio.value)
    assert replace(found, reference=None).time == REAL.timing.median


def test_a_brief_measurement_is_no_result() -> None:
    """It stands beside the outcome `screened`, nowhere else."""
    brief = Screening(share=0.1, timing=REAL.timing, time=REAL.time)
    assert record(SCREENED, screening=brief).screening == brief
    with pytest.raises(ValueError, match="'passed', expected 'screened'"):
        record(REAL, screening=brief)
    with pytest.raises(ValueError, match="'crashed', expected 'screened'"):
        record(Failure(outcome=Outcome.CRASHED, reason="signal 11"), screening=brief)


@pytest.mark.parametrize("where", ["cpu", "cuda", "hip", "interpreter", "emulator"])
def test_a_verdict_has_its_errors(where: str) -> None:
    """Whoever ran a variant has seen them."""
    seen = Verified(worst_share=0.0, worst_error=0.0)
    assert judged(seen, where).result == seen
    with pytest.raises(
        ValueError, match=f"^a verdict from {where} lacks worst_share, worst_error: only a rec"
    ):
        judged(Verified(), where)
    with pytest.raises(ValueError, match=f"^a verdict from {where} lacks worst_error: only a recorded one"):
        judged(Verified(worst_share=0.0), where)
    failure = Failure(outcome=Outcome.WRONG_VALUE, reason="y[0]")
    assert judged(failure, where).result == failure


def test_a_recorded_verdict_has_none() -> None:
    """Nothing ran."""
    assert judged(Verified(), "recorded").result == Verified()
    with pytest.raises(
        ValueError, match="a verdict that was recorded elsewhere has worst_share: expected none"
    ):
        judged(Verified(worst_share=0.5), "recorded")


def test_reading_refuses_as_well() -> None:
    """What was written by somebody else is no measurement either; the message says where it stands."""
    output = ProfileOutput(key="k", round=0, records=(record(REAL), record(RECORDED)))
    content = to_json(output)
    assert from_json(content, ProfileOutput) == output
    plain = msgspec.json.decode(content)
    plain["records"][0]["result"]["ceilings"] = None
    with pytest.raises(msgspec.ValidationError, match=r"lacks ceilings.* - at `\$\.records\[0\]\.result`"):
        from_json(msgspec.json.encode(plain), ProfileOutput)
    del plain["records"][0]["result"]["comparisons"][0]["timing"]["setup_seconds"]
    with pytest.raises(msgspec.ValidationError, match=r"a timing lacks setup_seconds: .*comparisons"):
        from_json(msgspec.json.encode(plain), ProfileOutput)


def test_winners_and_exported_rows() -> None:
    """What is made from the records keeps their rule."""
    fields = dict.fromkeys(Winner.__struct_fields__)
    rates = {"flops_per_second": 1.0, "bytes_per_second": 1.0, "roofline_share": 0.5, "bound": "memory"}
    cell = Cell(kernel="k", workload="w", hardware="h", dtype="float32")
    assert Winner(**fields | rates | {"cell": cell}).roofline_share == 0.5
    with pytest.raises(
        ValueError, match="^a winner lacks flops_per_second, bytes_per_second, roofline_share, b"
    ):
        Winner(**fields)
    with pytest.raises(
        ValueError, match="a winner that was recorded elsewhere has roofline_share, bound: exp"
    ):
        Winner(**fields | rates | {"recorded": ELSEWHERE})
    row = dict.fromkeys(Measurement.__struct_fields__)
    with pytest.raises(ValueError, match="^a measurement lacks calls_per_batch, roofline_share, bound: only"):
        Measurement(**row)
    verdict = dict.fromkeys(Verification.__struct_fields__)
    assert Verification(**verdict | {"where": "recorded"}).worst_share is None
    with pytest.raises(
        ValueError, match="^a verdict from cpu lacks worst_share, worst_error: only a recorded"
    ):
        Verification(**verdict | {"where": "cpu"})


@pytest.mark.alone
def test_the_cost_of_looking() -> None:
    """Less than half of reading a record with 100 samples: 0.2 s for 100,000 of them."""
    timing = replace(REAL.timing, samples=tuple(1e-5 + number * 1e-9 for number in range(100)))
    content = to_json(record(replace(REAL, timing=timing, comparisons=())))
    number = 2_000
    whole = _seconds(lambda: from_json(content, ProfileRecord), number)
    read = from_json(content, ProfileRecord)
    assert isinstance(read.result, Profiled)

    def look() -> None:
        read.result.__post_init__()
        read.result.timing.__post_init__()
        read.__post_init__()

    assert _seconds(look, number) < whole / 2


def _seconds(call: Any, number: int) -> float:
    """The least of some rounds: the machine may do other things."""
    found = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(number):
            call()
        found.append(time.perf_counter() - started)
    return min(found)
