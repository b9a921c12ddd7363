"""`kernelmill leaderboard`: stored submissions in, a table, a page and a CSV file out."""

import json
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.report.leaderboard.leaderboard_table import candidates_csv
from pipeline.store.submission_files import put_submission
from tests.report.leaderboard.sample_boards import several


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Five stored submissions."""
    for each in several():
        put_submission(tmp_path, each, candidates_csv(each))
    return tmp_path


def test_the_table(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A board per hardware; ranks with ties."""
    assert main(["leaderboard", "--root", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "h200 · A processor · 40 problems, against eager PyTorch"
    assert lines[1].split()[:3] == ["rank", "submission", "correct"]
    assert [line.split()[0] for line in lines[2:6]] == ["1–2", "1–2", "3", "4"]
    assert "cpu · A processor · 40 problems, against eager PyTorch" in lines


def test_files_and_filters(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page and the table have what was asked for, and their paths are printed."""
    html, csv = root / "board.html", root / "board.csv"
    chosen = ["--hardware", "cpu", "--level", "1", "--html", str(html), "--csv", str(csv)]
    assert main(["leaderboard", "--root", str(root), *chosen]) == 0
    out = capsys.readouterr().out
    assert "20 problems" in out
    assert "h200" not in out
    assert out.splitlines()[-2:] == [f"page       {html}", f"table      {csv}"]
    assert "small model" not in html.read_text()
    assert csv.read_text().count("on the processor") == 5  # all, one level, three categories


def test_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything, for programs."""
    assert main(["leaderboard", "--root", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(board["standings"]) for board in found] == [4, 1]


def test_removing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One is gone, from the page as well; an unknown name is answered with the nearest one."""
    arguments = ["leaderboard", "--root", str(root)]
    assert main([*arguments, "--remove", "small modl"]) == 2
    assert "no submission has this name; did you mean 'small model'?" in capsys.readouterr().err
    assert main([*arguments, "--remove", "small model", "--hardware", "cpu"]) == 2
    assert "no submission for cpu has this name" in capsys.readouterr().err
    assert main([*arguments, "--remove", "small model"]) == 0
    assert capsys.readouterr().out.startswith("removed   small model · h200 · A processor (")
    assert main(arguments) == 0
    assert "small model" not in capsys.readouterr().out
    assert "small model" not in (root / "submissions" / "leaderboard.html").read_text()
    assert len(list((root / "submissions").glob("*/candidates.csv"))) == 4


def test_removing_the_last_one(tmp_path: Path) -> None:
    """The page is empty, and the next command says how to fill it."""
    (only, *_) = several()
    put_submission(tmp_path, only, "")
    assert main(["leaderboard", "--root", str(tmp_path), "--remove", only.name]) == 0
    assert "No submission yet" in (tmp_path / "submissions" / "leaderboard.html").read_text()
    assert main(["leaderboard", "--root", str(tmp_path)]) == 2
