import msgspec
import pytest

from pipeline.performance.roofline import (
    LATENCY,
    estimate_bound,
    estimate_roofline_seconds,
    latency_seconds,
    per_second,
)
from pipeline.records.configuration.hardware import Hardware, Quantity
from pipeline.records.errors import ConfigError
from tests.paths import ROOT

HARDWARE = sorted((ROOT / "conf" / "hardware").glob("*.yaml"))


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [(4.8, "TB/s", 4.8e12), (2039, "GB/s", 2.039e12), (5e12, "B/s", 5e12), (989, "TFLOP/s", 9.89e14)],
)
def test_units(value, unit, expected):
    """Rates with a prefix become base units."""
    assert per_second("x", Quantity(value=value, unit=unit, source="")) == pytest.approx(expected)


def test_unknown_unit_names_the_peak():
    """An unknown unit says which peak, what it got, and what it wants."""
    with pytest.raises(
        ConfigError, match=r"peaks\.dram_bandwidth: got unit 'furlongs', expected for example GB/s"
    ):
        per_second("dram_bandwidth", Quantity(value=1, unit="furlongs", source=""))


def test_a_latency_is_a_time():
    """In seconds or parts of it; absent without a source."""
    declared = {LATENCY: Quantity(value=300, unit="ns", source="")}
    assert latency_seconds(declared) == pytest.approx(3e-7)
    assert latency_seconds({}) is None
    with pytest.raises(ConfigError, match=r"dram_latency: got unit 'cycles', expected one of s, us, ns"):
        latency_seconds({LATENCY: Quantity(value=400, unit="cycles", source="")})


def test_estimate_is_the_nearer_ceiling(spec):
    """The bound is the larger of the two times, and says which one it is."""
    task = next(task for task in spec.tasks if task.hardware == "h200" and task.kernel == "matmul")
    heavy = msgspec.structs.replace(task, flops=task.flops * 1000)
    assert (estimate_bound(task), estimate_bound(heavy)) == ("memory", "compute")
    assert estimate_roofline_seconds(heavy) == pytest.approx(heavy.flops / 989e12)


@pytest.mark.parametrize("path", HARDWARE, ids=lambda path: path.stem)
def test_every_declared_peak_has_a_unit_that_we_know(path):
    """A peak that nobody can read would give no estimate at the end of a long run."""
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(OmegaConf.load(path))
    hardware = msgspec.convert(plain, Hardware)
    for name, peak in hardware.peaks.items():
        found = latency_seconds(hardware.peaks) if name == LATENCY else per_second(name, peak)
        assert found is not None and found > 0
