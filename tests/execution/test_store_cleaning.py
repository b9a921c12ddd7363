"""A clean removes what no result refers to, and nothing else."""

import json
import os
import re
import time
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution.store_cleaning import find_contents
from pipeline.records.errors import StoreError

KEYS = {stage: f"{stage}-1" for stage in ("generate", "compile", "verify", "profile")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One experiment with an entry for each stage, outputs of another one, and an entry of nobody."""
    root = tmp_path / "artifacts"
    (root / "aggregate" / "e-1").mkdir(parents=True)
    (root / "aggregate" / "e-1" / "summary.json").write_text("{}")
    (root / "plan" / "aggregate").mkdir(parents=True)
    (root / "plan" / "aggregate" / "e-1.json").write_text(json.dumps({"tasks": [KEYS]}))
    for stage in ("compile", "verify", "profile"):
        for key, entry in ((f"{stage}-1", "aaaa"), (f"{stage}-2", "bbbb")):
            (root / stage / key).mkdir(parents=True)
            record = {"entry": entry, "variant": {"source_digest": "ffff"}}
            (root / stage / key / "round0.json").write_text(json.dumps({"records": [record]}))
            (root / "store" / stage / entry[:2] / entry).mkdir(parents=True)
            (root / "store" / stage / entry[:2] / entry / "record.json").write_text("{}")
    for entry in ("ffff", "gggg"):
        (root / "store" / "generate" / entry[:2] / entry).mkdir(parents=True)
    return root


def entries(root: Path) -> set[str]:
    """Names of the store's entries and of the outputs' folders."""
    folders = [*root.glob("store/*/??/*"), *root.glob("compile/*"), *root.glob("verify/*")]
    return {path.name for path in folders}


def test_results_keep_what_they_refer_to(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Outputs, entries and written sources; the rest goes, with --yes alone."""
    before = entries(root)
    assert main(["clean", "--root", str(root)]) == 0
    assert entries(root) == before, "nothing is removed where nobody can be asked"
    said = capsys.readouterr()
    assert "--yes" in said.err
    (row,) = [line for line in said.out.splitlines() if line.startswith("compiled variants")]
    assert re.sub(" +", " ", row).endswith("just now just now 1 4.0 KiB results refer to 1")
    assert main(["clean", "--yes", "--root", str(root)]) == 0
    assert entries(root) == {"aaaa", "ffff", "compile-1", "verify-1"}
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("compiled variants")]
    assert re.sub(" +", " ", row).endswith("just now just now 0 0 B results refer to 1"), "what is left"


def test_a_folder_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing mistake makes no folder."""
    missing = tmp_path / "artefacts"
    assert main(["clean", "--root", str(missing)]) == 2
    assert capsys.readouterr().err == f"error: --root {missing}: there is no such folder\n"
    assert not missing.exists()


def test_a_folder_that_cannot_be_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is listed without a lock."""
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    assert main(["clean", "--root", str(root)]) == 0
    assert capsys.readouterr().err == f"{root}: not writable: nothing can be removed\n"
    assert not (root / ".lock").exists()


def test_age(root: Path) -> None:
    """What was written lately stays."""
    old = root / "store" / "compile" / "bb" / "bbbb"
    past = time.time() - 10 * 86400
    for path in (old, old / "record.json"):
        os.utime(path, (past, past))
    assert [Path(each.path).name for each in find_contents(root).removable(5)] == ["bbbb"]


def test_a_result_that_cannot_be_read(root: Path) -> None:
    """Nobody knows what it refers to: nothing is removed."""
    (root / "plan" / "aggregate" / "e-1.json").write_text("{")
    with pytest.raises(StoreError, match=r"nothing was\s+removed"):
        find_contents(root)
