"""The table of a device's ceilings."""

from pathlib import Path

import msgspec

from pipeline.backends.devices.device_ceilings import BASE, envelope
from pipeline.execution.machine_ceilings import ShownCeilings, ceilings_text
from pipeline.records.configuration.hardware import Hardware, Quantity
from tests.measure.stand_ins import DEVICE, MB

HARDWARE = Hardware(
    name="cpu",
    description="The CPU of this machine.",
    kind="cpu",
    architecture="x86-64-v4",
    limits={},
    facts={"model": "Example", "cores": "2", "threads": "4"},
)
MEASURED = ShownCeilings(
    hardware=HARDWARE,
    ceilings=DEVICE,
    circumstances={"cores": "0,1", "boot": "3f", "governor": "performance"},
    file=Path("artifacts/cache/ceilings/1/ceilings.json"),
)


def lines(measured: ShownCeilings = MEASURED) -> list[str]:
    """The text, line by line."""
    return ceilings_text(measured).splitlines()


def test_what_was_measured_where() -> None:
    """Device, circumstances and file; the boot's number says nothing to a reader."""
    assert lines()[0] == "Example, 2 cores, 4 threads (x86-64-v4)"
    assert lines()[1] == "cores 0,1; governor performance"
    assert lines()[2].endswith("ceilings/1/ceilings.json")


def test_measured_beside_other_work() -> None:
    """What was disturbed says so, and what to do."""
    found = msgspec.structs.replace(DEVICE, parts={BASE: ("disturbed: the host took 30% of …",)})
    assert lines(msgspec.structs.replace(MEASURED, ceilings=found))[3] == (
        "disturbed: the host took 30% of …; on a quiet machine --again finds more, until then other "
        "checkouts do not share them"
    )


def test_caches_are_marked() -> None:
    """Each level stands where its working sets begin."""
    table = lines()[5:9]
    assert [line.split() for line in table[1:]] == [
        ["1", "MiB", "L2", "100.0", "100.0", "90.0"],
        ["16", "MiB", "L3", "80.0", "80.0", "70.0"],
        ["256", "MiB", "DRAM", "20.0", "30.0", "18.0"],
    ]
    assert "plain" not in table[0]


def test_write_allocate_beyond_the_caches_only() -> None:
    """A third more crosses the bus where the line that is written is fetched first."""
    plain = envelope([(MB, 60e9), (256 * MB, 12e9)])
    found = msgspec.structs.replace(DEVICE, triad_plain=plain)
    table = lines(msgspec.structs.replace(MEASURED, ceilings=found))[5:9]
    assert "triad, plain  with allocate" in table[0]
    assert table[1].split()[-1] == "60.0"
    assert table[3].split()[-2:] == ["12.0", "16.0"]


def test_share_of_declared_peaks() -> None:
    """Where the hardware's file declares a peak, each in the same unit."""
    peaks = {
        "dram_bandwidth": Quantity(value=40.0, unit="GB/s", source="datasheet"),
        "matrix_float32": Quantity(value=0.4, unit="TFLOP/s", source="datasheet"),
    }
    hardware = msgspec.structs.replace(HARDWARE, peaks=peaks)
    text = ceilings_text(msgspec.structs.replace(MEASURED, hardware=hardware))
    assert "50% of the declared dram_bandwidth (40.0 GB/s)" in text
    assert "50% of the declared matrix_float32 (400 GFLOP/s)" in text
    assert "declared" not in ceilings_text(MEASURED)


def test_peaks_and_launches() -> None:
    """What was not measured is a dash, integers count operations."""
    found = msgspec.structs.replace(
        DEVICE,
        matrix_flops=DEVICE.matrix_flops | {"int8": 2e12},
        matrix_library=DEVICE.matrix_library | {"int8": "torch"},
    )
    table = {
        line.split()[0]: line.split()
        for line in lines(msgspec.structs.replace(MEASURED, ceilings=found))[14:]
        if line.strip()
    }
    assert table["float32"] == ["float32", "200", "GFLOP/s", "torch", "50.0", "GFLOP/s"]
    assert table["int8"] == ["int8", "2.00", "TOP/s", "torch", "–"]
    assert table["2.00"][:2] == ["2.00", "µs"]
