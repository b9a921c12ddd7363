"""Meanings of verdicts: the guide has the same ones."""

import re

from pipeline.records.outcome import Outcome
from pipeline.verify.candidates.verdict_meanings import MEANINGS
from tests.paths import ROOT

ROW = re.compile(r"^\| ((?:`\w+` ?)+)\| (.*) \|$", re.MULTILINE)


def test_the_guide_says_the_same() -> None:
    """Every row of its table is the cause of its outcomes, and no outcome is missing."""
    text = (ROOT / "docs" / "guide" / "judge.md").read_text()
    table = text.partition("## Verdicts")[2].partition("\n\n**")[0]
    rows = {name: cause for names, cause in ROW.findall(table) for name in re.findall(r"\w+", names)}
    assert len(rows) > 15
    assert {name: MEANINGS[Outcome(name)].cause for name in rows} == rows
