"""Variants are dropped by facts of their binaries; a share is measured all the same."""

import msgspec
import pytest

from pipeline.records.configuration.pruning import Prune
from pipeline.records.results.compiled import StaticFacts
from pipeline.search.static_pruning import is_measured_anyway, reason
from tests.search.synthetic import WIDE, trial, valley

FACTS = StaticFacts(code_bytes=100, spills=24, local_memory=64, occupancy_bound=0.25)


def test_reasons() -> None:
    """Each fact beyond its limit is one; what is within, or cannot be known, is none."""
    assert reason(FACTS, Prune()) is None
    assert reason(FACTS, Prune(spills_at_most=24)) is None
    assert reason(FACTS, Prune(spills_at_most=0)) == "spills 24 bytes per thread, search.prune allows 0"
    assert reason(FACTS, Prune(local_memory_at_most=32)) == (
        "64 bytes of local memory per thread, search.prune allows 32"
    )
    assert reason(FACTS, Prune(occupancy_at_least=0.5)) == "estimated occupancy 25%, search.prune wants 50%"
    unknown = StaticFacts(code_bytes=100)
    assert reason(unknown, Prune(spills_at_most=0, occupancy_at_least=0.9, local_memory_at_most=0)) is None


def test_a_share_is_measured_anyway() -> None:
    """About so many, the same ones each time; none or all at the ends."""
    variants = [trial(point, valley, 0).variant for point in WIDE.points()]
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
