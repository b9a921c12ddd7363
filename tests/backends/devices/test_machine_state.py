"""What ceilings depend on beside the device."""

from pathlib import Path

import pytest

from pipeline.backends.cpp import compiler
from pipeline.backends.devices import machine_state as module
from pipeline.backends.devices.device_registry import device
from pipeline.backends.devices.machine_state import driver_state, machine_state
from pipeline.records.errors import ToolchainError
from tests.nvml_stand_in import StandIn, load


def test_this_machine() -> None:
    """The cores that may be used and the versions are known everywhere; nothing empty is kept."""
    found = device("cpu").measurement().circumstances()
    assert {"cores", "kernel", "torch", "numpy"} <= found.keys()
    assert all(found.values())
    assert "driver" not in found


def test_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU's figures depend on the compiler; a later stage reports that it is missing."""
    monkeypatch.setattr(compiler, "toolchain", lambda: {"c++": "g++ 99", "c++ flags": "-O3"})
    assert device("cpu").measurement().circumstances()["compiler"] == "g++ 99"
    assert "compiler" not in device("cuda").measurement().circumstances()

    def none() -> dict[str, str]:
        raise ToolchainError("no C++ compiler")

    monkeypatch.setattr(compiler, "toolchain", none)
    assert "compiler" not in device("cpu").measurement().circumstances()


def test_fewer_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is bound to one core has ceilings of its own."""
    before = device("cpu").measurement().circumstances()["cores"]
    monkeypatch.setattr(module, "usable_cores", lambda: (63,))
    assert device("cpu").measurement().circumstances()["cores"] == "63" != before


def test_system_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quota, clock limits and the driver come from their files."""
    load(None, monkeypatch)
    for path, text in (
        ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
        ("proc/driver/nvidia/version", "NVRM version: NVIDIA 570.86.15\nGCC version: 12\n"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = machine_state(tmp_path) | driver_state("proc/driver/nvidia/version", tmp_path)
    assert found["quota"] == "150000 100000"
    assert found["boost"] == "0"
    assert found["driver"] == "NVRM version: NVIDIA 570.86.15"
    assert "boot" not in found
    assert "limits" not in device("cuda").measurement().circumstances()


def test_limits_of_nvidia_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power and clocks as NVML reports them; what it does not support is left out."""
    StandIn(tmp_path, monkeypatch)
    found = device("cuda").measurement().circumstances()
    assert found["limits"] == "power 700 graphics 3202 memory 3202; power 700 graphics 3202 memory 3202"
