"""What a user reads after a mistake on the command line: one line, its exit code, and no traceback.

The texts are the snapshot in `__snapshots__`: `pytest --snapshot-update` with this file accepts new ones.
Mistakes in conf/ are in `tests/plan/config/test_errors.py`. Other tests assert classes, codes and values.
"""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pipeline.cli.main import main
from tests.plan.project import Project

COMMANDS = (
    "plam",
    "plan --what",
    "plan kernel",
    "plan kernels=scale",
    "plan kernel=scal",
    "plan hardware=h20",
    "plan workload=smal",
    "plan experiment=defualt",
    "plan search=optuna search.optuna.sampler=tpee",
    "plan profile.seconds_per_variant=abc",
    "plan profile.second_per_variant=1",
    "plan hardware=h100,h200 kernel=",
    "plan hardware=h100 hardware=h200",
    "plan search=random search=grid",
    "sweep kernel=scal,scale",
    "run kernel=scal",
    "run --cores few",
    "judge",
    "judge nowhere",
    "bundle show absent.kmb",
    "bundle ingest conf/config.yaml",
    "space show kernel=scal",
    "ceilings h20",
    "export",
    "code show",
    "code show kernel=scale",
    "aa kernel=scal",
    "store status",
    "nodes forget",
    "completion tcsh",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A small project."""
    return Project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def project(made: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The small project, which is the current folder."""
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("COLUMNS", "80")
    return made


def said(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The exit code and what is written to standard error."""
    code = main(line.split())
    text = capsys.readouterr().err.replace(str(folder), "FOLDER")
    assert text.startswith("error: ") and text.count("\n") == 1, text
    return f"{text}exit code {int(code)}"


@pytest.mark.parametrize("line", COMMANDS)
def test_commands(
    line: str, project: Project, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    """A mistake on the command line."""
    assert said(line, project.folder, capsys) == snapshot


def test_no_project(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    """Started in another folder."""
    monkeypatch.chdir(tmp_path)
    assert said("plan", tmp_path, capsys) == snapshot
