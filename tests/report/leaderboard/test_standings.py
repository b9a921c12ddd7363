"""Who can be compared with whom, and who is ahead."""

import csv
import io

import msgspec
import pytest

from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.results.scored import ScoredProblem, Submission
from pipeline.report.leaderboard.leaderboard_table import candidates_csv, leaderboard_csv, terminal_rows
from pipeline.report.leaderboard.standings import BoardFilter, boards
from tests.performance.submissions import failed, measured, problem, submission
from tests.report.leaderboard.sample_boards import several


def fast_on(name: str, count: int, of: int = 40) -> Submission:
    """Twice as fast as eager on some problems, wrong on the others."""
    samples = [measured(2.0) if place < count else failed() for place in range(of)]
    return submission(name, *(problem(str(place), each, level="1") for place, each in enumerate(samples)))


def test_overlapping_intervals_are_ties() -> None:
    """Of 40 problems, 38 and 36 are a tie, 10 is behind both, and nobody is behind it but itself."""
    (board,) = boards([fast_on("far", 10), fast_on("second", 36), fast_on("first", 38)])
    assert [(each.submission.name, each.rank) for each in board.standings] == [
        ("first", "1–2"),
        ("second", "1–2"),
        ("far", "3"),
    ]


def test_a_copy_is_tied() -> None:
    """Forty copies of one submission: every one may be the first or the last."""
    (board,) = boards([fast_on(str(number), 20) for number in range(40)])
    assert {each.rank for each in board.standings} == {"1–40"}


def test_other_problems_are_another_board() -> None:
    """A problem more, another device or an edited problem: nothing is compared."""
    edited = submission("c", ScoredProblem(name="0", digest="edited", samples=(measured(2.0),)))
    found = boards([fast_on("a", 1, of=2), fast_on("b", 1, of=3), edited, submission("d", hardware="h200")])
    assert sorted(len(board.standings) for board in found) == [1, 1, 1]


def test_a_level_makes_submissions_comparable() -> None:
    """One judged on level 1, the other on both levels: on level 1 they meet."""
    first = submission("a", problem("x", measured(2.0), level="1"))
    both = submission("b", problem("x", measured(3.0), level="1"), problem("y", failed(), level="2"))
    assert len(boards([first, both])) == 2
    (board,) = boards([first, both], BoardFilter(level="1"))
    assert [each.submission.name for each in board.standings] == ["b", "a"]


def test_another_baseline_ranks_otherwise() -> None:
    """Ahead of eager, behind torch.compile."""
    one = submission("one", problem("x", measured(3.0, compiled=0.5)))
    two = submission("two", problem("x", measured(0.5, compiled=1.5)))
    orders = [boards([one, two], BoardFilter(baseline=name))[0] for name in (None, "compile")]
    assert [[each.submission.name for each in board.standings] for board in orders] == [
        ["one", "two"],
        ["two", "one"],
    ]


def test_what_was_not_measured_has_no_rank() -> None:
    """It is listed last, with its correctness alone: no time is not a time of 0."""
    passed = problem("x", failed(Outcome.PASSED))
    judged = msgspec.structs.replace(submission("judged", passed), measured=False)
    (board,) = boards([judged, submission("measured", problem("x", failed()))])
    assert [(each.submission.name, each.rank) for each in board.standings][-1] == ("judged", "–")
    assert terminal_rows(board)[-1][2:5] == ("100 % (21-100)", "-", "-")


def test_a_column_of_what_is_right_on_reduced_sizes() -> None:
    """Next to what is correct, if there is any."""
    reduced = submission("one", problem("x", failed(Outcome.PASSED_REDUCED)), problem("y", measured(2.0)))
    (board,) = boards([reduced])
    heading, row = terminal_rows(board)
    assert heading[2:5] == ("correct", "reduced", "fast_1")
    assert row[3] == "+ 50 %"
    (board,) = boards([submission("one", problem("x", measured(2.0)))])
    assert "reduced" not in terminal_rows(board)[0]


def test_a_problem_that_is_invalid_for_one_is_for_all() -> None:
    """Candidates of one show that the problem is invalid; both are scored without it."""
    invalid = ScoredProblem(name="y", digest="of y", excluded="not deterministic")
    one = submission("one", problem("x", measured(2.0)), invalid)
    two = submission("two", problem("x", measured(2.0)), problem("y"))
    (board,) = boards([one, two])
    assert [each.scores.problems for each in board.standings] == [1, 1]


@pytest.mark.parametrize(("option", "known"), [("hardware", "cpu, h200"), ("level", "1, 2")])
def test_an_unknown_choice_names_the_known_ones(option: str, known: str) -> None:
    """As everywhere."""
    with pytest.raises(ConfigError) as caught:
        boards(several(), BoardFilter(**{option: "x"}))
    assert str(caught.value) == f"--{option} x: no submission has it (known: {known})"


def test_the_csv_has_every_group() -> None:
    """All problems, each level and each category; absent values are empty."""
    rows = list(csv.DictReader(io.StringIO(leaderboard_csv(boards(several())))))
    (whole, *parts) = [row for row in rows if row["submission"] == "small model"]
    assert (whole["level"], whole["category"], whole["best_rank"]) == ("", "", "3")
    assert [row["level"] or row["category"] for row in parts] == ["1", "2", "loss", "matmul", "norm"]
    assert 0 < float(whole["fast_1.eager.low"]) < float(whole["fast_1.eager"]) < float(whole["correct"])
    assert sum(int(row["problems"]) for row in parts if row["level"]) == int(whole["problems"])


def test_the_table_of_candidates() -> None:
    """Each with its verdict, and its time where it has one; control characters are taken out."""
    odd = msgspec.structs.replace(failed(), reason="a\x1b[31mb")
    made = submission("one", problem("x", measured(2.0), odd))
    fast, slow = csv.DictReader(io.StringIO(candidates_csv(made)))
    assert (fast["outcome"], float(fast["speedup.eager"]), fast["verdict.eager"]) == ("passed", 2.0, "faster")
    assert (slow["outcome"], slow["speedup.eager"]) == ("wrong_value", "")
    assert "\x1b" not in slow["reason"]
