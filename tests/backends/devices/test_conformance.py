"""Every kind of device keeps to the interface: those that are present, and one of another package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.devices import hip
from pipeline.backends.devices.device import Device, DeviceMeasurement, FoundDevice, NotAvailable
from pipeline.backends.devices.device_registry import HOST, device, device_kinds, executes_on_host
from pipeline.records.configuration.hardware import RECORDED, Target
from pipeline.records.errors import ConfigError
from tests.nvml_stand_in import StandIn
from tests.paths import ROOT
from tests.selection import slow_unless

RECIPE = ROOT / "docs" / "recipes" / "device.md"
CHECKS = ("buffers", "timer", "observation", pytest.param("ceilings", marks=pytest.mark.slow))


@pytest.fixture
def conforms(tmp_path: Path):
    """Runs a check on a kind of device in a process of its own; the recipe's package is on its path."""

    def run(where: str, check: str) -> None:
        source = re.search(r"^```python core_device/(\S+)\n(.*?)^```$", RECIPE.read_text(), re.M | re.S)
        assert source is not None
        (tmp_path / source[1]).write_text(source[2])
        ended = subprocess.run(
            [sys.executable, "-m", "tests.backends.devices.conforming", where, check],
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr

    return run


@pytest.mark.alone
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", device_kinds())
def test_a_kind_that_is_present(kind: str, check: str, conforms) -> None:
    """On the device itself."""
    member = device(kind)
    if not member.found():
        pytest.skip(f"no {kind} device")
    conforms(f"{type(member).__module__}:{type(member).__name__}", check)


@pytest.mark.alone
@pytest.mark.parametrize(
    "check", slow_unless("buffers".__eq__, ("buffers", "timer", "observation", "ceilings"))
)
def test_a_kind_of_another_package(check: str, conforms) -> None:
    """The device of the recipe: what is outside of the project conforms as well."""
    conforms("kernelmill_core:Core", check)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An NVIDIA and an AMD device, as their drivers would report them."""
    StandIn(tmp_path, monkeypatch)
    monkeypatch.setattr(hip, "KFD_NODES", tmp_path / "nodes")
    node = tmp_path / "nodes" / "1"
    node.mkdir(parents=True)
    (node / "properties").write_text("gfx_target_version 90402\n")


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("kind", device_kinds())
def test_what_is_known_without_a_device(kind: str) -> None:
    """Identity, presence, circumstances; every value is named after its kind."""
    member = device(kind)
    measurement = member.measurement()
    assert isinstance(member, Device)
    assert isinstance(measurement, DeviceMeasurement)
    assert member.kind == measurement.kind == kind
    first = member.found()[0]
    assert isinstance(first, FoundDevice)
    assert first.kind == kind
    assert first.name
    assert member.base_architecture(first.architecture) == first.architecture
    other = Target(kind=kind, architecture="none", limits={})
    assert member.mismatch(other) is not None
    if not member.is_host:
        assert member.mismatch(Target(kind=kind, architecture=first.architecture, limits={})) is None
    assert all(measurement.circumstances().values())
    assert measurement.counter_lines()
    assert executes_on_host(kind) == member.is_host


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("kind", device_kinds())
def test_readings_without_a_device(kind: str) -> None:
    """From the stand-in of a driver, or a reason in one line."""
    measurement = device(kind).measurement()
    try:
        source = measurement.conditions()
    except NotAvailable as absent:
        assert "\n" not in str(absent)
    else:
        assert source.read().samples == 1
        source.close()
    try:
        with measurement.energy_meter() as meter:
            assert meter.source
    except NotAvailable as absent:
        assert "\n" not in str(absent)


def test_nothing_heavy_is_imported() -> None:
    """Asking which kinds there are, and for their values, costs milliseconds."""
    code = (
        "import sys\n"
        "from pipeline.backends.devices.device_registry import device, device_kinds\n"
        "for kind in device_kinds(): device(kind).measurement()\n"
        "print({'torch', 'triton', 'pynvml', 'numpy'} & sys.modules.keys())\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_unknown_kinds() -> None:
    """The known ones are listed; records of other machines may name a kind that is not installed."""
    with pytest.raises(ConfigError, match="expected one of cpu, cuda, hip, got 'tpu'"):
        device("tpu")
    assert not executes_on_host("tpu")
    assert not executes_on_host(RECORDED)
    assert executes_on_host(HOST)
