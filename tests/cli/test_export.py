"""The command line of the export."""

from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.performance.quantities import counted
from tests.interop.dataset.made_up import ours, plain


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was written, what was left out, and where the card is."""
    ours(tmp_path / "artifacts")
    out = tmp_path / "out"
    arguments = ["--root", str(tmp_path / "artifacts"), "--out", str(out)]
    assert main(["export", *arguments]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{out}: {counted(len(plain(out)), 'row')}, 0 pairs, 1 file")
    assert said[-2].endswith(" that were planned but have not finished")
    assert said[-1] == f"card      {out / 'README.md'}"
    card = (out / "README.md").read_text()
    assert "kernelmill export --root" in card
    assert str(tmp_path) not in card
    assert main(["export", *arguments]) == 1
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("judged", [False, True])
def test_nothing_but_judged_candidates(
    judged: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are no part of the data set, and it says where their table is."""
    if judged:
        (tmp_path / "judge").mkdir()
        (tmp_path / "judge" / "softmax.json").write_text("{}")
    assert main(["export", "--root", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"error: {tmp_path}: nothing to export: no experiment was planned there" in said
    assert ("candidates of kernelmill judge are no part of the data set" in said) is judged


@pytest.mark.parametrize("line", ["llm", "llm=", "nobody=MIT"])
def test_a_declaration_that_says_nothing(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Got, expected, and the known names."""
    assert main(["export", "--out", "x", "--declare", line]) == 2
    said = capsys.readouterr().err
    assert f"--declare {line}: expected WRITER=LICENCE" in said
    assert "candidates, inductor, llm, mutate" in said
