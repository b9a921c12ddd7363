"""Which GPUs a machine has, from a driver's library and the kernel's tables as they are on other machines."""

from pathlib import Path

import pytest

from pipeline.backends.devices import hip
from pipeline.backends.devices.device import FoundDevice
from pipeline.backends.devices.device_registry import device
from pipeline.records.configuration.hardware import Target
from tests.nvml_stand_in import StandIn, load


@pytest.fixture
def nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library with NVML's functions that knows two devices."""
    StandIn(tmp_path, monkeypatch)


def target(architecture: str) -> Target:
    """What a binary is compiled for."""
    return Target(kind="cuda", architecture=architecture, limits={})


@pytest.mark.usefixtures("nvml")
def test_nvidia_devices() -> None:
    """The first one is what this machine has; binaries run on any of them."""
    assert device("cuda").found()[0] == ("cuda", "sm_90", "NVIDIA H200")
    assert device("cuda").mismatch(target("sm_90a")) is None
    assert device("cuda").mismatch(target("sm_89")) is None
    assert device("cuda").mismatch(target("sm_80")) == "has no sm_80 device, which the plan counts on"


@pytest.mark.usefixtures("nvml")
@pytest.mark.parametrize(
    ("visible", "first"),
    [
        ("1", "sm_89"),
        ("1,0", "sm_89"),
        ("GPU-9", "sm_89"),
        ("7,0", None),
        ("MIG-1", "sm_90"),
        ("MIG-2", None),
        ("", None),
        ("-1", None),
        ("7", None),
    ],
)
def test_only_visible_devices_count(monkeypatch: pytest.MonkeyPatch, visible: str, first: str | None) -> None:
    """As for CUDA itself, in its order."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert next((found.architecture for found in device("cuda").found()), None) == first


def test_amd_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processors are nodes as well, of version 0; versions are decimal, architectures hexadecimal."""
    monkeypatch.setattr(hip, "KFD_NODES", tmp_path)
    for node, version in (("0", 0), ("1", 90402), ("2", 90010), ("10", 110000)):
        (tmp_path / node).mkdir()
        (tmp_path / node / "properties").write_text(f"simd_count 8\ngfx_target_version {version}\n")
    (tmp_path / "1" / "name").write_text("aqua_vanjaram\n")
    assert device("hip").found() == (
        FoundDevice("hip", "gfx942", "aqua_vanjaram"),
        FoundDevice("hip", "gfx90a", "gfx90a"),
        FoundDevice("hip", "gfx1100", "gfx1100"),
    )


def test_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither driver is here."""
    load(None, monkeypatch)
    monkeypatch.setattr(hip, "KFD_NODES", tmp_path / "none")
    assert device("cuda").found() == device("hip").found() == ()
    assert device("cuda").mismatch(target("sm_90")) == "has no sm_90 device, which the plan counts on"
