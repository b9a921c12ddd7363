"""Attempts of agents in a data set: whole chains, with texts as far as their licences go."""

from pathlib import Path

import pytest

from pipeline.interop.dataset.source_texts import Licensing
from pipeline.records.outcome import Outcome
from pipeline.records.results.attempts import Attempt
from pipeline.records.results.judged import Verdict
from pipeline.store.attempt_history import append_attempt, put_source
from tests.interop.dataset.made_up import exported, plain

OUTCOMES = (Outcome.WRONG_VALUE, Outcome.LAUNCH_ERROR, Outcome.PASSED)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two clients that tried one problem three times each."""
    root = tmp_path / "artifacts"
    for client in ("one", "two"):
        for number, outcome in enumerate(OUTCOMES, start=1):
            source = put_source(root, f"# {number} of {client}\n")
            reason = "" if outcome is Outcome.PASSED else "output 0[3]: got 1, expected 2"
            append_attempt(
                root,
                Attempt(
                    client=client,
                    conversation=f"of {client}",
                    order=number,
                    number=number,
                    created="2026-01-01T00:00:00+00:00",
                    hardware="local",
                    problem_digest="p",
                    problem_source=put_source(root, "class Model: ...\n"),
                    source=source,
                    verdict=Verdict(problem="double", solution=source, outcome=outcome, reason=reason),
                    known=False,
                    seconds=1.0,
                ),
            )
    return root


def test_chains_of_attempts(store: Path, tmp_path: Path) -> None:
    """Each attempt names the one before it; sources have the licence that the user declares."""
    counts = exported(store, tmp_path / "out", licensing=Licensing(declared={"agents": "MIT"}))
    assert (counts.rows, counts.attempts) == (0, 6)
    rows = plain(tmp_path / "out", "attempts")
    assert [row["outcome"] for row in rows] == [*OUTCOMES, *OUTCOMES]
    assert [row["previous"] for row in rows[:3]] == [None, rows[0]["id"], rows[1]["id"]]
    assert rows[3]["previous"] is None
    assert rows[0]["feedback"] == "wrong_value: output 0[3]: got 1, expected 2"
    assert rows[2]["source"]["text"] == "# 3 of one\n"
    assert rows[2]["reference"]["text"] is None


def test_texts_without_a_licence(store: Path, tmp_path: Path) -> None:
    """Left out with the reason, unless they are asked for."""
    exported(store, tmp_path / "out")
    exported(store, tmp_path / "all", licensing=Licensing(unlicensed=True))
    assert "--declare" in plain(tmp_path / "out", "attempts")[0]["source"]["absent"]
    assert plain(tmp_path / "all", "attempts")[0]["reference"]["text"] == "class Model: ...\n"
