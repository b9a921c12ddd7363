"""Brief measurements: shorter settings, and a record that nobody can take for a result."""

import msgspec
import pytest

from pipeline.measure.comparison.screening import brief, screened, share_of, shortened, smaller
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.profiled import ProfileRecord
from tests.report.sample_run import PROVENANCE
from tests.search.synthetic import SPACE, easy, trial
from tests.stages.test_profile import SPEC

DIMENSIONS = SPEC.problem.dimensions
SETTINGS = Profile(
    name="",
    description="",
    baselines=("eager", "compile"),
    seconds_per_variant=0.9,
    batches_at_least=9,
    processes_at_least=2,
    processes_at_most=4,
    batches_at_most=90,
    batch_seconds=0.004,
    warmup_seconds=0.03,
    warmup_seconds_at_most=0.3,
    relative_half_width=0.03,
    confidence=0.95,
    time_limit=60.0,
    flush_cache=False,
    mode="offline",
    idle_seconds=0.0,
    cuda_graph="never",
    energy_seconds=0.5,
    gpu_counters=True,
)


def test_settings() -> None:
    """A share of the seconds and batches, at least three of them; one baseline; nothing beside the time."""
    brief = shortened(SETTINGS, 1 / 9)
    assert (brief.batches_at_least, brief.batches_at_most) == (3, 10)
    assert abs(brief.seconds_per_variant - 0.1) < 1e-9
    assert (brief.baselines, brief.energy_seconds, brief.gpu_counters) == (("eager",), None, False)
    assert brief.batch_seconds == SETTINGS.batch_seconds
    assert shortened(SETTINGS, 1.0) is SETTINGS


def test_the_share_of_a_round() -> None:
    """Without a ladder every round measures fully."""
    assert share_of((), 5) == 1.0
    assert share_of((0.25, 1.0), 0) == 0.25


def test_what_a_round_measures() -> None:
    """Another problem where the shape is smaller; with the workload's own nothing is said of one."""
    spec = msgspec.structs.replace(
        SPEC, screening=(0.1, 1.0), shapes=({"rows": 64, "cols": 1024}, DIMENSIONS)
    )
    first, last = brief(spec, 0), brief(spec, 1)
    assert (first.problem.dimensions, last.problem) == ({"rows": 64, "cols": 1024}, SPEC.problem)
    assert first.settings.seconds_per_variant == pytest.approx(0.1 * SPEC.settings.seconds_per_variant)
    assert (smaller(spec, 0), smaller(spec, 1), smaller(SPEC, 0)) == ({"rows": 64, "cols": 1024}, None, None)
    assert (last.screening, last.shapes) == ((), ())


def test_a_failure_stays_one() -> None:
    """What failed in a brief measurement failed; a full measurement is left alone."""
    variant = trial(SPACE.points()[0], easy, 0).variant
    failure = Failure(outcome=Outcome.CRASHED, reason="signal 11")
    record = ProfileRecord(variant=variant, entry="e", result=failure, seconds=1.0, provenance=PROVENANCE)
    assert screened(record, 0.25) is record
    assert screened(msgspec.structs.replace(record), 1.0) == record
