"""Variants are dropped by facts of their binaries and by the analytic bound; a share is measured anyway."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.records.configuration.hardware import Quantity, Target
from pipeline.records.configuration.pruning import Bounded, Prune, Reach, Scale
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.record import to_json
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.profiled import ProfileOutput, ProfileRecord
from pipeline.search.variant_pruning import (
    NO_FORMULA,
    NO_RATES,
    NOTHING_MEASURED,
    is_measured_anyway,
    judge,
    reason,
    scale_of,
)
from tests.performance.bound_results import GPU_LIMITS, GPU_PEAKS, cpu_task, profiled
from tests.performance.bound_results import facts as gpu_facts
from tests.report.sample_run import PROVENANCE
from tests.search import synthetic
from tests.verify.harness.build import spec as verify_spec
from tests.verify.harness.build import variant

CPU = Target(kind="cpu", architecture="x86-64-v4", limits={"vector_bits": 512})
GPU = Target(kind="cuda", architecture="sm_90", limits=GPU_LIMITS)
WORK: dict[str, Any] = {
    "flops": 1e9, "bytes": 1e6, "read": 5e5, "unit": "matrix", "dtype": "float32", "peaks": {},
}  # fmt: skip
REACH = Reach(bandwidth=1e10, vector_flops=1e11, matrix_flops=1e11)
VECTORS = StaticFacts(instructions={"vector_512": 10, "vector_fma": 10})
SCALAR = StaticFacts(instructions={"scalar_float": 10}, spills=8)


def record(name: int, facts: StaticFacts, **changes: Any) -> CompileRecord:
    """One variant that compiled to a binary with these facts."""
    made: dict[str, Any] = {
        "artifact": "k", "artifact_digest": str(name), "functions": ("kernel",), "facts": facts, "files": ()
    }  # fmt: skip
    compiled = Compiled(**made | changes)
    own = variant(str(name), tunables={"NUMBER": name})
    return CompileRecord(variant=own, entry=str(name), result=compiled, seconds=0.1, provenance=PROVENANCE)


def spec(prune: Prune, target: Target = CPU, **bounded: Any) -> VerifySpec:
    """A task that prunes."""
    return verify_spec(target=target, prune=prune, bounded=Bounded(**WORK | bounded))


WIDE, NARROW = record(0, VECTORS), record(1, SCALAR)
MOST = Prune(bound_over_best_at_most=1)
RELATIVE = Prune(bound_over_least_at_most=4)


def test_longer_than_what_was_measured() -> None:
    """Scalar code reaches an eighth of the peak: at its best it needs 80 ms where 20 were measured."""
    found = judge(spec(MOST), [WIDE, NARROW], Scale(seconds=20e-3, reach=REACH))
    assert found.unwanted == {
        NARROW.variant.id: (
            "least time estimated at 80 ms, 4 times the best measured so far, search.prune allows 1"
        )
    }
    assert found.undecided == {}


def test_a_bound_below_what_was_measured_says_nothing() -> None:
    """What may still be the best stays."""
    assert judge(spec(MOST), [WIDE, NARROW], Scale(seconds=0.2, reach=REACH)).unwanted == {}


def test_longer_than_the_shortest_of_the_round() -> None:
    """No variant needs to be measured for that; with equal bounds none is dropped."""
    found = judge(spec(RELATIVE), [WIDE, NARROW], Scale(reach=REACH))
    assert found.unwanted == {
        NARROW.variant.id: (
            "least time estimated at 80 ms, 8 times the shortest estimate of the round, search.prune allows 4"
        )
    }
    assert judge(spec(RELATIVE), [NARROW], Scale(reach=REACH)).unwanted == {}


def test_declared_peaks_before_anything_is_measured() -> None:
    """On a GPU the shape of the launch tells: 133 blocks on 132 multiprocessors take two turns."""
    even, uneven = (record(blocks, gpu_facts(), grid=(blocks,)) for blocks in (132, 133))
    task = spec(
        Prune(bound_over_least_at_most=1.5), GPU, dtype="float16", peaks=GPU_PEAKS, flops=1e12, bytes=4e8
    )
    found = judge(task, [even, uneven], None)
    assert list(found.unwanted) == [uneven.variant.id]
    assert found.undecided == {}


@pytest.mark.parametrize(
    ("changes", "scale", "why"),
    [
        ({"flops": None}, Scale(seconds=1e-3, reach=REACH), NO_FORMULA),
        ({}, Scale(seconds=1e-3), NO_RATES),
        ({}, None, NO_RATES),
        ({}, Scale(reach=REACH), NOTHING_MEASURED),
    ],
)
def test_what_is_not_known_stays(changes: dict[str, Any], scale: Scale | None, why: str) -> None:
    """With the reason, variant by variant."""
    found = judge(spec(MOST, **changes), [WIDE, NARROW], scale)
    assert found.unwanted == {}
    assert found.undecided == dict.fromkeys((WIDE.variant.id, NARROW.variant.id), why)


def test_another_rule_decides_what_the_bound_cannot() -> None:
    """A variant that spills is not undecided."""
    found = judge(spec(Prune(bound_over_best_at_most=1, spills_at_most=0)), [WIDE, NARROW], None)
    assert found.unwanted == {NARROW.variant.id: "spills 8 bytes per thread, search.prune allows 0"}
    assert list(found.undecided) == [WIDE.variant.id]


def test_what_did_not_compile_has_no_bound() -> None:
    """Nothing is said of it, nor without a rule about bounds."""
    failed = msgspec.structs.replace(WIDE, result=Failure(outcome=Outcome.COMPILE_ERROR, reason="no"))
    assert judge(spec(MOST), [failed], Scale(seconds=1e-9, reach=REACH)).unwanted == {}
    plain = judge(spec(Prune(spills_at_most=99)), [WIDE, NARROW], Scale(seconds=1e-9, reach=REACH))
    assert (plain.unwanted, plain.undecided) == ({}, {})


def test_the_scale_is_what_was_measured_fully(tmp_path: Path) -> None:
    """The fastest full measurement and its ceilings; a brief one, and a failure, count for nothing."""
    row = cpu_task()
    brief = Failure(outcome=Outcome.SCREENED, reason="briefly")
    records = [
        ProfileRecord(
            variant=variant(str(number)), entry=str(number), result=result, seconds=0.1, provenance=PROVENANCE
        )
        for number, result in enumerate((profiled(row, 0.05), brief, profiled(row, 0.04)))
    ]
    path = tmp_path / "profile.json"
    path.write_bytes(to_json(ProfileOutput(key="p", round=0, records=tuple(records))))
    reach = Reach(bandwidth=5e10, vector_flops=2e11, matrix_flops=4e11)
    assert scale_of([path]) == Scale(seconds=0.04, reach=reach)
    path.write_bytes(to_json(ProfileOutput(key="p", round=0, records=(records[1],))))
    assert scale_of([path]) == scale_of([]) == Scale()


def test_multiples_that_would_drop_everything() -> None:
    """Are mistakes."""
    with pytest.raises(ValueError, match="bound_over_best_at_most: expected more than 0, got 0"):
        Prune(bound_over_best_at_most=0)
    with pytest.raises(ValueError, match=r"bound_over_least_at_most: expected at least 1, got 0\.5"):
        Prune(bound_over_least_at_most=0.5)


def test_a_peak_that_is_not_declared_is_not_guessed() -> None:
    """Only one of two peaks declared: no bound."""
    one = {"dram_bandwidth": Quantity(value=4.0, unit="TB/s", source="test")}
    found = judge(spec(RELATIVE, GPU, peaks=one), [record(0, gpu_facts(), grid=(132,))], None)
    assert list(found.undecided.values()) == [NO_RATES]


SPILLING = StaticFacts(code_bytes=100, spills=24, local_memory=64, occupancy_bound=0.25)


def test_reasons() -> None:
    """Each fact beyond its limit is one; what is within, or cannot be known, is none."""
    assert reason(SPILLING, Prune()) is None
    assert reason(SPILLING, Prune(spills_at_most=24)) is None
    assert reason(SPILLING, Prune(spills_at_most=0)) == "spills 24 bytes per thread, search.prune allows 0"
    assert reason(SPILLING, Prune(local_memory_at_most=32)) == (
        "64 bytes of local memory per thread, search.prune allows 32"
    )
    assert (
        reason(SPILLING, Prune(occupancy_at_least=0.5)) == "estimated occupancy 25%, search.prune wants 50%"
    )
    unknown = StaticFacts(code_bytes=100)
    assert reason(unknown, Prune(spills_at_most=0, occupancy_at_least=0.9, local_memory_at_most=0)) is None


def test_a_share_is_measured_anyway() -> None:
    """About so many, the same ones each time; none or all at the ends."""
    variants = [synthetic.trial(point, synthetic.valley, 0).variant for point in synthetic.WIDE.points()]
    half = Prune(measured_anyway=0.5)
    chosen = [is_measured_anyway(variant, half) for variant in variants]
    assert chosen == [is_measured_anyway(variant, half) for variant in variants]
    assert 0.45 < sum(chosen) / len(chosen) < 0.55
    assert not any(is_measured_anyway(each, Prune(measured_anyway=0)) for each in variants)
    assert all(is_measured_anyway(each, Prune(measured_anyway=1)) for each in variants)


def test_a_share_is_a_share() -> None:
    """Beyond one it is a mistake."""
    with pytest.raises(ValueError, match="measured_anyway: expected a share from 0 to 1, got 2"):
        msgspec.structs.replace(Prune(), measured_anyway=2.0).__post_init__()
