"""`kernelmill sweep`: what a user can get wrong is one line and an exit code, and nothing has run."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from pipeline.execution.sweep import dag_launcher
from pipeline.execution.sweep.command_line import multirun
from tests.paths import ROOT
from tests.selection import slow_unless

CELL = ("workload=awkward", "hardware=cpu", "optimization=baseline", "hydra.sweep.dir=sweep")
NOT_YAML = "\nmistake: [\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own with our conf/ and kernels/, in which no Snakemake may start."""
    for part in ("conf", "kernels"):
        shutil.copytree(ROOT / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["kernelmill run"])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setattr(dag_launcher, "run_snakemake", lambda *_, **__: pytest.fail("Snakemake was started"))
    before = HydraConfig.instance().cfg
    yield tmp_path
    HydraConfig.instance().cfg = before
    GlobalHydra.instance().clear()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line that a sweep ends with."""
    assert multirun(("-m", *arguments), ()) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize("kernel", slow_unless("softmax,rms_norm".__eq__, ["softmax", "softmax,rms_norm"]))
def test_an_option_that_is_no_yaml(project: Path, capsys: pytest.CaptureFixture[str], kernel: str) -> None:
    """Its file, line and column; whether Hydra reads it first or the plan does."""
    with (project / "conf/kernel/softmax.yaml").open("a") as stream:
        stream.write(NOT_YAML)
    line = refused(capsys, f"kernel={kernel}", *CELL)
    assert line.startswith("error: conf/kernel/softmax.yaml: line ") and ": not YAML: " in line


@pytest.mark.slow
def test_a_configuration_that_is_no_yaml(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that names all the others."""
    with (project / "conf/config.yaml").open("a") as stream:
        stream.write(NOT_YAML)
    assert refused(capsys, "kernel=softmax", *CELL).startswith("error: conf/config.yaml: line ")


@pytest.mark.slow
def test_a_folder_that_cannot_be(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file is where the sweep's folder should be."""
    (project / "taken").write_text("")
    line = refused(capsys, "kernel=softmax", *CELL, "hydra.sweep.dir=taken/sweep", code=1)
    assert line == "error: taken/sweep: cannot be written: Not a directory"


def test_a_folder_on_a_full_disk(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a write that began names no file, so that the message does."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeline.execution.sweep.grid_sweeper.OmegaConf.save", full)
    line = refused(capsys, "kernel=softmax", *CELL, code=1)
    assert line == "error: sweep: cannot be written: No space left on device; free space and run again"


@pytest.mark.parametrize(
    "key", slow_unless("hydra.sweep.dir".__eq__, ["hydra.sweep.dir", "hydra.sweep.subdir"])
)
def test_a_name_that_cannot_be_made(project: Path, capsys: pytest.CaptureFixture[str], key: str) -> None:
    """An interpolation of something that is not there."""
    assert "nowhere" in refused(capsys, "kernel=softmax", *CELL, f"{key}=${{nowhere}}")


def test_an_unknown_name_in_a_list(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, with the one that may be meant."""
    line = refused(capsys, "kernel=softmax,rms_nrom", *CELL)
    expected = "error: kernel=softmax,rms_nrom: unknown kernel 'rms_nrom'; did you mean 'rms_norm'?"
    assert line.startswith(expected)


def test_a_setting_that_the_searching_sweeper_does_not_have(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The names that are meant, and not Hydra's advice to append it."""
    lines = ["-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trails=3", "kernel=softmax,matmul", *CELL]
    assert multirun(lines, ()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "there is no 'n_trails' in hydra.sweeper" in line and "did you mean 'n_trials'?" in line
