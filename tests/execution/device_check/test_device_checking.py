"""The list of checks, the file, and a run on a machine without a device."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.device import FoundDevice
from pipeline.backends.devices.device_registry import device_kinds
from pipeline.execution.device_check import device_checking
from pipeline.execution.device_check.check_processes import Check, run_check
from pipeline.execution.device_check.check_report import DeviceCheck, write_report
from pipeline.execution.device_check.device_checking import absence_of, checks_for, empty_report, run_checks
from pipeline.plan.local_machine import read_machine
from pipeline.records.record import read_record
from tests.paths import ROOT
from tests.second_device import install

ROOM = "tests.execution.device_check.made_up_checks"
without_device = pytest.mark.skipif(
    read_machine().accelerator is not None, reason="this machine has a device"
)


def test_all_checks() -> None:
    """Names are unique; a hang of one leaves time for the others."""
    checks = checks_for("cuda")
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    assert {"softmax, cuda, launched", "softmax, triton, as a graph", "driver, seccomp"} <= set(names)
    assert not any(name.startswith("softmax, cpp") for name in names)
    assert all(check.seconds <= 240 for check in checks)


def test_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines as they end, in whatever order, and the same in the file."""
    found = FoundDevice(kind="cuda", architecture="sm_90", name="NVIDIA H200")
    checks = [Check(name, f"{ROOM}:{name}", 30.0, "it") for name in ("works", "raises")]
    check = msgspec.structs.replace(
        empty_report("cuda", found), lines=tuple(run_checks(checks, "cuda", found))
    )
    assert check.failed
    assert {line.name: line.status for line in check.lines} == {"works": "ok", "raises": "failed"}
    printed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert printed == [[line.name, line.status] for line in check.lines]
    write_report(tmp_path / "check.json", check)
    assert read_record(tmp_path / "check.json", DeviceCheck) == check
    content = (tmp_path / "check.json").read_text()
    assert str(ROOT) not in content and str(Path.home()) not in content


def test_what_measures_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others run side by side; what comes before them has ended, and what comes after has not begun."""
    monkeypatch.setattr(device_checking, "_workers", lambda: 2)
    checks = [
        Check("first", f"{ROOM}:meets", 30.0, "first second"),
        Check("second", f"{ROOM}:meets", 30.0, "second first"),
        Check("third", f"{ROOM}:is_alone", 30.0, "third", alone=True),
        Check("fourth", f"{ROOM}:is_alone", 30.0, "fourth", alone=True),
        Check("fifth", f"{ROOM}:works", 30.0),
    ]
    lines = list(run_checks(checks, "cuda", None))
    assert [line.status for line in lines] == ["ok"] * 5
    names = [line.name for line in lines]
    assert (set(names[:2]), names[2:]) == ({"first", "second"}, ["third", "fourth", "fifth"])


@without_device
def test_why_there_is_none() -> None:
    """As the driver's library says."""
    assert "NVIDIA" in absence_of("cuda") or "nvml" in absence_of("cuda")


@without_device
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_without_a_device(tmp_path: Path) -> None:
    """Packed and run elsewhere: what needs the device is absent with a reason, none failed."""
    only = ("versions", "driver, confined", "softmax, triton, launched", "judge, out of bounds", "counters")
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    pack = ["-m", "pipeline", "bundle", "pack", "--check", "--python", python, "--out"]
    job, out = tmp_path / "check.pyz", tmp_path / "device_check.json"
    subprocess.run([sys.executable, *pack, str(job)], cwd=ROOT, check=True, timeout=200)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    start = [sys.executable, str(job), "run", "--work", str(tmp_path / "work")]
    start += [f"--only={name}" for name in only]
    ended = subprocess.run(
        start, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    check = read_record(out, DeviceCheck)
    assert sorted(line.name for line in check.lines) == sorted(only)
    lines = {line.name: line for line in check.lines}
    assert lines.pop("versions").status == "ok"
    assert {line.status for line in lines.values()} == {"absent"}
    assert all(line.detail for line in lines.values())
    assert "expected out_of_bounds, found out_of_bounds" in lines["judge, out of bounds"].detail
    assert "verified" in lines["softmax, triton, launched"].detail
    assert check.provenance.git is not None
    content = out.read_text()
    assert str(tmp_path) not in content and str(ROOT) not in content


@pytest.mark.slow
def test_the_driver_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of another package: opened in a plain process and in confined ones."""
    folder = install(tmp_path / "package")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    device_kinds.cache_clear()
    try:
        found = FoundDevice(kind="second", architecture="second_1", name="Second")
        checks = [each for each in checks_for("second") if each.name in ("driver, plain", "driver, confined")]
        lines = tuple(run_checks(checks, "second", found))
    finally:
        device_kinds.cache_clear()
    assert [line.status for line in lines] == ["ok", "ok"], lines


def test_the_command_says_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1; what is absent is no failure."""
    from pipeline.cli.main import main

    out = tmp_path / "a.json"
    assert main(["check", "--device", "--only", "counter", "--out", str(out)]) == 2
    for functions, code in ((["works", "absent"], 0), (["absent", "raises"], 1)):
        made_up = tuple(Check(name, f"{ROOM}:{name}", 30.0) for name in functions)
        monkeypatch.setattr(device_checking, "checks_for", lambda kind, made_up=made_up: made_up)
        assert main(["check", "--device", "--out", str(out)]) == code
        assert len(read_record(out, DeviceCheck).lines) == 2
    assert main(["check", "--out", str(out)]) == 2
    assert main(["check", "--only", "counters"]) == 2


def test_one_setting_for_each(tmp_path: Path) -> None:
    """A check of an unknown module is a failed line as well."""
    from pipeline.execution.device_check.check_processes import CheckSetting

    setting = CheckSetting(kind="cuda", folder=str(tmp_path))
    assert run_check(Check("a", "tests.nowhere:f", 30.0), setting).status == "failed"
