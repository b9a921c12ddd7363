"""Histories of agents: whole lines only, one file per client, one holder per lock."""

import contextlib
from pathlib import Path

import pytest

from pipeline.records.outcome import Outcome
from pipeline.records.results.attempts import Attempt
from pipeline.records.results.judged import Verdict
from pipeline.store.attempt_history import (
    append_attempt,
    history_path,
    locked,
    put_source,
    read_attempts,
    source_path,
)

NOW = 0.0
"""A deadline that has passed."""


def attempt(client: str, number: int) -> Attempt:
    """The attempt of that number."""
    return Attempt(
        client=client,
        conversation="one",
        order=number,
        number=number,
        created="2026-01-01T00:00:00+00:00",
        hardware="local",
        problem_digest="p",
        problem_source="t",
        source="s",
        verdict=Verdict(problem="double", solution="s", outcome=Outcome.PASSED),
        known=False,
        seconds=1.0,
    )


def test_what_a_kill_cut_off_is_passed_over(tmp_path: Path) -> None:
    """Attempts before and after a torn line are there."""
    append_attempt(tmp_path, attempt("a", 1))
    with history_path(tmp_path, "a").open("ab") as stream:
        stream.write(b'{"client":"a","num')
    append_attempt(tmp_path, attempt("a", 2))
    assert [each.number for each in read_attempts(tmp_path, "a")] == [1, 2]


def test_clients_have_files_of_their_own(tmp_path: Path) -> None:
    """Names that differ in letters that files cannot have stay apart, and none leaves the folder."""
    names = ["a b", "a_b", "a/b", "../a", ""]
    for name in names:
        append_attempt(tmp_path, attempt(name, 1))
    assert all(len(read_attempts(tmp_path, name)) == 1 for name in names)
    assert sorted(each.client for each in read_attempts(tmp_path)) == sorted(names)
    assert {history_path(tmp_path, name).parent for name in names} == {tmp_path / "agents" / "history"}


def test_a_source_is_stored_once(tmp_path: Path) -> None:
    """Its name follows from the text."""
    name = put_source(tmp_path, "x = 'é'\n")
    assert put_source(tmp_path, "x = 'é'\n") == name
    assert source_path(tmp_path, name).read_text() == "x = 'é'\n"


def test_locks_exclude_and_end(tmp_path: Path) -> None:
    """Two of two are taken, a third waits until its deadline; then they are free again."""
    names = ("core 0", "core 1")
    with contextlib.ExitStack() as held:
        for _ in names:
            held.enter_context(locked(tmp_path, *names, deadline=NOW))
        with pytest.raises(TimeoutError):
            held.enter_context(locked(tmp_path, *names, deadline=NOW))
    with locked(tmp_path, *names, deadline=NOW):
        pass
