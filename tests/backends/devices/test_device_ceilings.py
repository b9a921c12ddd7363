"""A device's figures: merged, and read by level."""

import msgspec
import pytest

from pipeline.backends.devices.device_ceilings import (
    BASE,
    DeviceCeilings,
    Level,
    at,
    better,
    envelope,
    gain,
    level_bandwidth,
    level_of,
    sizes,
)
from tests.measure.stand_ins import DEVICE, MB


def test_a_disturbed_point_is_mended() -> None:
    """A smaller working set cannot be slower than a larger one."""
    points = envelope([(256, 20.0), (1, 100.0), (16, 0.5)])
    assert [(point.working_set, point.bandwidth) for point in points] == [(1, 100.0), (16, 20.0), (256, 20.0)]


def lower() -> DeviceCeilings:
    """A second measurement: worse but for one point and one product."""
    return msgspec.structs.replace(
        DEVICE,
        copy=envelope([(MB, 90e9), (16 * MB, 85e9), (256 * MB, 10e9)]),
        matrix_flops={"float32": 150e9, "bfloat16": 300e9},
        matrix_library={"float32": "numpy", "bfloat16": "numpy"},
        vector_flops={"float32": 60e9},
        launch_seconds={"call": 3e-6, "region": 0.5e-6},
    )


def test_the_better_figures_are_kept() -> None:
    """Disturbances only lower a ceiling, and lengthen a call; the library goes with its figure."""
    both = better(DEVICE, lower())
    assert [point.bandwidth for point in both.copy] == [100e9, 85e9, 20e9]
    assert both.triad == DEVICE.triad and both.triad_plain == ()
    assert both.matrix_flops == {"float32": 200e9, "float16": 3e9, "bfloat16": 300e9}
    assert both.matrix_library == {"float32": "torch", "float16": "torch", "bfloat16": "numpy"}
    assert both.vector_flops == {"float32": 60e9}
    assert both.launch_seconds == {"call": 2e-6, "region": 0.5e-6}


def test_the_order_of_measurements_does_not_matter() -> None:
    """The same figures, whichever was measured first."""
    assert better(DEVICE, lower()) == better(lower(), DEVICE)


def test_what_was_disturbed_both_times() -> None:
    """A part that was measured undisturbed once is not disturbed; one that was measured once is as it was."""
    one = msgspec.structs.replace(
        DEVICE, parts={BASE: ("busy",), "float32": ("busy",), "float64": ("stolen",)}
    )
    other = msgspec.structs.replace(DEVICE, parts={BASE: (), "float32": ("stolen",), "int8": ()})
    both = better(one, other)
    assert both.parts == {BASE: (), "float32": ("busy",), "float64": ("stolen",), "int8": ()}
    assert sorted(both.disturbed) == ["busy", "stolen"]
    assert both.lacks(("int8", "float16")) == ("float16",)


def test_what_a_round_improved() -> None:
    """The largest relative gain of any figure decides whether another round is worth it."""
    assert gain(DEVICE, DEVICE) == 0
    assert gain(DEVICE, better(DEVICE, lower())) == pytest.approx(0.2)
    faster = msgspec.structs.replace(DEVICE, triad=envelope([(MB, 180e9)]))
    assert gain(DEVICE, faster) == pytest.approx(1.0)


def test_never_too_low_a_ceiling() -> None:
    """Between two measured working sets the smaller one counts."""
    assert [at(DEVICE.copy, size) for size in (1, MB, 15 * MB, 16 * MB, 1000 * MB)] == [
        100e9, 100e9, 100e9, 80e9, 20e9,
    ]  # fmt: skip


def test_the_level_that_holds_the_data() -> None:
    """A working set of a level's capacity still fits."""
    names = [level_of(DEVICE.levels, size).name for size in (0, 4 * MB, 4 * MB + 1, 33 * MB)]
    assert names == ["L2", "L2", "L3", "DRAM"]


def test_what_is_typical_of_a_level() -> None:
    """The nearest level's best, the middle of one in between, the last one's largest working set."""
    levels = (Level(name="L1", capacity=MB), Level(name="L2", capacity=64 * MB), Level(name="DRAM"))
    points = envelope([(size * MB // 2, 1000.0 / size) for size in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)])
    assert level_bandwidth(points, levels, levels[0]) == 1000.0
    assert level_bandwidth(points, levels, levels[1]) == 1000.0 / 16
    assert level_bandwidth(points, levels, levels[2]) == 1000.0 / 512


def test_a_level_without_a_working_set() -> None:
    """A cache that is smaller than everything that was measured has no figure."""
    tiny = (Level(name="L1", capacity=1024), *DEVICE.levels)
    assert level_bandwidth(DEVICE.copy, tiny, tiny[0]) is None


def test_a_launch() -> None:
    """On a CPU the call and the region, on a GPU the stream; without either it is not known."""
    assert DEVICE.launch() == pytest.approx(3e-6)
    gpu = {"stream": 4e-6, "graph": 1e-6, "synchronised": 9e-6}
    assert msgspec.structs.replace(DEVICE, launch_seconds=gpu).launch() == 4e-6
    assert msgspec.structs.replace(DEVICE, launch_seconds=gpu).launch(in_graph=True) == gpu["graph"]
    assert msgspec.structs.replace(DEVICE, launch_seconds={"call": 1e-6}).launch() is None


def test_working_sets() -> None:
    """Powers of two, both ends included."""
    assert sizes(1 << 4, 1 << 6) == [16, 32, 64]
