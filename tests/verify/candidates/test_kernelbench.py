"""Scan a folder of problems: order, identity, and one line for each thing that is wrong."""

from pathlib import Path

import pytest

from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.verify.candidates.kernelbench import complaints, scan

PROBLEM = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"


def problem(folder: Path, name: str, source: str | None = PROBLEM, **solutions: str) -> Path:
    """Write a problem with its candidates."""
    path = folder / name
    (path / "solutions").mkdir(parents=True)
    if source is not None:
        (path / "problem.py").write_text(source)
    for solution, text in solutions.items():
        (path / "solutions" / f"{solution}.py").write_text(text)
    return path


def test_order_and_names(tmp_path: Path) -> None:
    """Problems and candidates are sorted by name; hidden folders and other files are none."""
    problem(tmp_path, "b", z="class ModelNew: ...", a="class ModelNew: ...")
    problem(tmp_path, "a")
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("")
    found = scan(tmp_path)
    assert [each.name for each in found] == ["a", "b"]
    assert [each.name for each in found[1].candidates] == ["a", "z"]
    assert found[1].failure is None


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "no such file, expected Model, get_inputs in it"),
        ("def get_inputs(): ...", "no class Model, expected Model, get_inputs"),
        ("class Model: ...", "no function get_inputs, expected Model, get_inputs"),
        ("class Model:\n  def", "line 2: syntax error: invalid syntax"),
        ("x = '\0'", "source code string cannot contain null bytes"),
    ],
)
def test_bad_problem(tmp_path: Path, source: str | None, reason: str) -> None:
    """The line names the file, what is wrong and what was expected; others are not concerned."""
    problem(tmp_path, "bad", source, a="class ModelNew: ...")
    problem(tmp_path, "good", a="class ModelNew: ...")
    bad, good = scan(tmp_path)
    assert bad.failure is not None
    assert bad.failure.outcome is Outcome.BAD_PROBLEM
    assert bad.failure.reason.startswith(reason) or reason in bad.failure.reason
    (line,) = complaints(bad)
    assert line.startswith(f"{tmp_path}/bad/problem.py: ")
    assert good.failure is None
    assert complaints(good) == ()


def test_names_may_come_from_anywhere(tmp_path: Path) -> None:
    """Imported, assigned, bound under a condition: all are there; inside of a function they are not."""
    problem(tmp_path, "a", "from base import Model\nif True:\n    get_inputs = lambda: []\n")
    problem(tmp_path, "b", "from base import *\n")
    problem(tmp_path, "c", "def f():\n    Model = get_inputs = 1\n")
    assert [each.failure is None for each in scan(tmp_path)] == [True, True, False]


def test_bad_candidate(tmp_path: Path) -> None:
    """A candidate that is not Python is reported before anything runs."""
    problem(tmp_path, "p", a="class ModelNew(:", b="class ModelNew: ...")
    (found,) = scan(tmp_path)
    first, second = found.candidates
    assert first.failure is not None
    assert first.failure.outcome is Outcome.COMPILE_ERROR
    assert first.failure.reason.startswith("line 1: syntax error")
    assert second.failure is None


def test_identity(tmp_path: Path) -> None:
    """A problem is all of its files but the candidates; a candidate is its content, not its name."""
    path = problem(tmp_path, "p", a="class ModelNew: ...", b="class ModelNew: ...")
    (before,) = scan(tmp_path)
    assert before.candidates[0].digest == before.candidates[1].digest
    (path / "solutions" / "a.py").write_text("class ModelNew: pass")
    (same,) = scan(tmp_path)
    assert same.digest == before.digest
    assert same.candidates[0].digest != before.candidates[0].digest
    (path / "weights.bin").write_bytes(b"1")
    assert scan(tmp_path)[0].digest != before.digest


@pytest.mark.parametrize("kind", ["absent", "file", "empty", "problem"])
def test_nothing_to_judge(tmp_path: Path, kind: str) -> None:
    """One line that says what was found and what was expected."""
    folder = tmp_path / "x"
    if kind == "file":
        folder.write_text("")
    elif kind == "empty":
        folder.mkdir()
    elif kind == "problem":
        problem(tmp_path, "x")
    words = {
        "absent": "does not exist",
        "file": "is a file",
        "empty": "holds no problem",
        "problem": "is one problem",
    }
    with pytest.raises(ConfigError, match=f"{folder}: {words[kind]}.*expected"):
        scan(folder)
