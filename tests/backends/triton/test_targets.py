"""The declared GPU targets: complete for compiler and occupancy rules, and consistent in themselves."""

import re

import pytest

from pipeline.backends.machine_code.warp_occupancy import Resources, occupancy
from pipeline.plan.config.compose import composer
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.record import from_plain
from tests.backends.triton.triton_jobs import ROOT, TARGETS, target

FLOPS_PER_CLOCK = {"cuda": 256, "hip": 256}  # float32, of one multiprocessor: 128 fused multiply-adds


@pytest.fixture(params=TARGETS)
def hardware(request):
    """One declared target."""
    with composer(ROOT / "conf") as composed:
        return from_plain(composed.option("hardware", request.param), Hardware)


def test_every_number_has_a_dated_source(hardware):
    """A document with its year, or the driver that reports it."""
    for name, quantity in (hardware.limits | hardware.peaks).items():
        assert quantity.unit, name
        assert re.search(r"\(20\d\d\)|the driver reports", quantity.source), f"{name}: {quantity.source}"


def test_limits_are_complete(hardware):
    """The compiler and the occupancy rules find all that they ask for."""
    need = Resources(threads=128, registers=64, shared_memory=1024)
    found = occupancy(target(hardware.name), need)
    assert found is not None
    assert 0 < found.share <= 1
    limits = hardware.limits
    assert limits["shared_memory_per_block"].value <= limits["shared_memory_per_sm"].value
    assert limits["threads_per_sm"].value % limits["warp_size"].value == 0


def test_peaks_agree_with_each_other(hardware):
    """Dense figures: float16 as bfloat16, tf32 half of it, fp8 twice; float32 at a clock that exists."""
    peaks = {name: peak.value for name, peak in hardware.peaks.items()}
    assert peaks["matrix_bfloat16"] == peaks["matrix_float16"]
    if "matrix_tf32" in peaks:
        assert peaks["matrix_float16"] / peaks["matrix_tf32"] == pytest.approx(2, rel=0.03)
    if "matrix_fp8" in peaks:
        assert peaks["matrix_fp8"] / peaks["matrix_float16"] == pytest.approx(2, rel=0.01)
    per_clock = hardware.limits["sm_count"].value * FLOPS_PER_CLOCK[hardware.kind]
    if hardware.name == "a100":
        per_clock /= 2  # 64 float32 units a multiprocessor (compute capability 8.0)
    clock = peaks["vector_float32"] / per_clock
    assert 1.3e9 < clock < 2.6e9
