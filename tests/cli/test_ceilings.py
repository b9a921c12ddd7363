"""The command that shows what the device here reaches."""

import io
import sys
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.measure.ceilings import ceiling_measurement as measuring
from tests.measure.stand_ins import DEVICE
from tests.paths import ROOT


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is measured; which way was asked for is noted."""
    asked: list[str] = []

    def fake(name: str):
        def measure(server: object, device: measuring.CeilingsDevice):
            asked.append(f"{name} {device.kind} {device.cache.name}")
            return DEVICE

        return measure

    monkeypatch.setattr(measuring, "measured", fake("kept"))
    monkeypatch.setattr(measuring, "measured_again", fake("again"))
    monkeypatch.setattr(measuring, "measured_afresh", fake("afresh"))
    monkeypatch.setattr("pipeline.sandbox.processes.fork_server.ForkServer", _NoServer)
    return asked


class _NoServer:
    def __init__(self, preload: tuple[str, ...]) -> None:
        self.preload = preload

    def close(self) -> None:
        """Nothing runs."""


def run(*arguments: str) -> int:
    """The command on the project's own hardware files."""
    return main(["ceilings", *arguments, "--conf", str(ROOT / "conf")])


def test_table(measured: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kept figures by default, new ones where asked for."""
    assert run("cpu", "--root", str(tmp_path)) == 0
    assert run("cpu", "--again", "--root", str(tmp_path)) == 0
    assert run("cpu", "--afresh", "--root", str(tmp_path)) == 0
    assert measured == ["kept cpu ceilings", "again cpu ceilings", "afresh cpu ceilings"]
    assert "256 MiB  DRAM" in capsys.readouterr().out


def test_a_reader_that_has_seen_enough(
    measured: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`… | head` is no bug of ours: no traceback."""

    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert run("cpu", "--root", str(tmp_path)) == 0


def test_a_device_that_is_not_here(measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Its ceilings cannot be measured, and the text says what can."""
    assert run("mi355x") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: mi355x: no gfx950 device on this machine (it has ")
    assert "`kernelmill ceilings` measures what is here" in error
    assert measured == []


def test_an_unknown_device(capsys: pytest.CaptureFixture[str]) -> None:
    """The known ones are listed."""
    assert run("h300") == 2
    assert "known: a100" in capsys.readouterr().err
