"""Verdicts and times of a judged folder as a submission."""

from pathlib import Path

import msgspec
import pytest

from pipeline.execution.submissions import (
    HandedIn,
    SubmissionRequest,
    leaderboard,
    placed,
    sample_numbers,
    scored,
    scored_problems,
    submission_lines,
    write_page,
)
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.judged import CandidateFile, ProblemFolder, Verdict
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.timed import HeldOutTiming, TimedRecord
from pipeline.report.leaderboard.leaderboard_table import candidates_csv
from pipeline.report.leaderboard.standings import BoardFilter, boards
from pipeline.store.submission_files import put_submission, read_submissions, submission_folder
from tests.execution.gym.made_up import profiled
from tests.performance.submissions import MADE, failed, measured, problem, submission

PASSED = Verdict(problem="softmax", solution="fast", outcome=Outcome.PASSED, id="3f0c")


def timed(result: Profiled | Failure, held_out: tuple[HeldOutTiming, ...] = ()) -> TimedRecord:
    """What timing says of the candidate."""
    return TimedRecord(
        problem="softmax",
        solution="fast",
        entry="entry",
        result=result,
        held_out=held_out,
        seconds=1.0,
        provenance=MADE,
    )


@pytest.mark.parametrize(
    ("name", "folder", "expected"),
    [
        ("level1/23_softmax", "problems", ("1", None)),
        ("level2_problem_7", "problems", ("2", None)),
        ("Level-3/norm/layer", "problems", ("3", "norm")),
        ("norm/rms_norm", "problems", (None, "norm")),
        ("23_softmax", "level4", ("4", None)),
        ("levelled", "problems", (None, None)),
        ("level1b", "problems", (None, None)),
    ],
)
def test_level_and_category(name: str, folder: str, expected: tuple[str | None, str | None]) -> None:
    """From the parts of the name, and the folder around the problem."""
    path = f"/some/{folder}/{name.rpartition('/')[2]}/problem.py"
    assert placed(ProblemFolder(name=name, path=path, digest="d", candidates=())) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], [0, 1]),
        (["x_sample_3", "x_sample_0"], [3, 0]),
        (["level_1_problem_2_sample_1_kernel", "b", "c"], [1, 0, 2]),
        ([], []),
    ],
)
def test_sample_numbers(names: list[str], expected: list[int]) -> None:
    """Those that names end with; the others take what is free."""
    assert sample_numbers(names) == expected


def folders(**candidates: int) -> list[ProblemFolder]:
    """Problems by name (`_` for `/`), each with so many candidates."""
    return [
        ProblemFolder(
            name=name.replace("_", "/"),
            path="problem.py",
            digest="d",
            candidates=tuple(
                CandidateFile(name=str(number), path="s.py", digest="d") for number in range(count)
            ),
        )
        for name, count in candidates.items()
    ]


@pytest.mark.parametrize(
    ("judged", "unanswered", "expected"),
    [
        ({"level1_a": 1}, {"level1_b": 0, "level2_a": 0}, ["level1/a", "level1/b"]),
        ({"level1_a": 1, "level2_a": 2}, {"level2_b": 0}, ["level1/a", "level2/a", "level2/b"]),
        ({"a": 1, "b": 0}, {}, ["a", "b"]),
        ({"a": 0}, {}, ["a"]),
    ],
)
def test_scored_on_all_problems_of_its_levels(
    judged: dict[str, int], unanswered: dict[str, int], expected: list[str]
) -> None:
    """One without a candidate is failed; a level without any is not taken part in."""
    found = scored_problems(folders(**judged), folders(**unanswered))
    assert [each.name for each in found] == expected


def test_a_rejected_candidate_has_no_time() -> None:
    """Its verdict is all that is known."""
    verdict = Verdict(problem="p", solution="s", outcome=Outcome.WRONG_VALUE, reason="y[0]")
    made = scored(verdict, None, 2, "s.py")
    assert (made.outcome, made.reason, made.sample, made.path, made.time) == (
        Outcome.WRONG_VALUE,
        "y[0]",
        2,
        "s.py",
        None,
    )


@pytest.mark.parametrize("outcome", [Outcome.UNSTABLE_TIMING, Outcome.DEVICE_UNAVAILABLE])
def test_correct_without_a_time(outcome: Outcome) -> None:
    """A measurement that did not come to an end says nothing against the candidate."""
    made = scored(PASSED, timed(Failure(outcome=outcome, reason="why")), 0, "")
    assert (made.outcome, made.reason, made.time) == (Outcome.PASSED, f"{outcome}: why", None)


def test_reduced_sizes_and_a_time() -> None:
    """Timed on the declared sizes, where the result is compared, too: correct. Without a time: reduced."""
    reduced = msgspec.structs.replace(PASSED, outcome=Outcome.PASSED_REDUCED, reason="n=7")
    fast = profiled(low=1.9, value=2.0, high=2.1, seconds=1e-3)
    slow = Failure(outcome=Outcome.TIMEOUT, reason="60 s")
    outcomes = [scored(reduced, each and timed(each), 0, "").outcome for each in (fast, slow, None)]
    assert outcomes == [Outcome.PASSED, Outcome.PASSED_REDUCED, Outcome.PASSED_REDUCED]


@pytest.mark.parametrize("outcome", [Outcome.OVER_ROOFLINE, Outcome.TAMPERED, Outcome.CRASHED])
def test_what_timing_finds_wrong_counts(outcome: Outcome) -> None:
    """Faster than the device can be is no pass."""
    assert scored(PASSED, timed(Failure(outcome=outcome, reason="why")), 0, "").outcome is outcome


def test_times_and_other_sizes() -> None:
    """The speed-up with its interval; on other sizes what was found, if it came to an end."""
    fast = profiled(low=1.9, value=2.0, high=2.1, seconds=1e-3)
    unstable = Failure(outcome=Outcome.UNSTABLE_TIMING, reason="drift")
    refused = Failure(outcome=Outcome.LAUNCH_ERROR, reason="n must be even")
    other: tuple[Profiled | Failure, ...] = (fast, unstable, refused)
    held_out = tuple(HeldOutTiming(sizes={"n": size}, result=each) for size, each in enumerate(other))
    time = scored(PASSED, timed(fast, held_out), 0, "").time
    assert time is not None
    assert time.seconds.value == 1e-3
    assert [(each.baseline, each.speedup.value, each.verdict) for each in time.speedups] == [
        ("eager", 2.0, "faster")
    ]
    assert [(each.sizes, each.verdict) for each in time.held_out] == [("n=0", "faster"), ("n=2", "failed")]
    assert time.estimated_bound_share is None


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", "x" * 101])
def test_names_that_cannot_be_shown(name: str) -> None:
    """One line, as everywhere."""
    with pytest.raises(ConfigError, match="expected 1 to 100 printable characters"):
        SubmissionRequest.of(name, "mlflow")


@pytest.mark.parametrize("name", ["a/b", "a\\b", "../a"])
def test_names_that_look_like_paths(name: str) -> None:
    """They would name another folder."""
    with pytest.raises(ConfigError, match=r"expected a name without / and \\$"):
        SubmissionRequest.of(name, "mlflow")


def test_the_same_result_is_stored_once(tmp_path: Path) -> None:
    """Judged again at another time: the first record stays; another result takes its place."""
    first = submission("a / b", problem("x", measured(2.0)))
    stored = put_submission(tmp_path, first, candidates_csv(first))
    later = submission("a / b", problem("x", measured(2.0)))
    assert put_submission(tmp_path, later, candidates_csv(later)) == stored
    changed = submission("a / b", problem("x", failed()))
    put_submission(tmp_path, changed, candidates_csv(changed))
    assert read_submissions(tmp_path) == [changed]


def test_similar_names_are_two_submissions(tmp_path: Path) -> None:
    """`a/b` and `a_b` are one folder's name, and two submissions."""
    for name in ("a/b", "a_b"):
        put_submission(tmp_path, submission(name, problem("x", failed())), "")
    assert {each.name for each in read_submissions(tmp_path)} == {"a/b", "a_b"}


def test_a_damaged_record_is_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are ranked."""
    whole, broken = (submission(name, problem("x", failed())) for name in ("whole", "broken"))
    for each in (whole, broken):
        put_submission(tmp_path, each, "")
    (submission_folder(tmp_path, broken) / "submission.json").write_text("{")
    assert read_submissions(tmp_path) == [whole]
    assert capsys.readouterr().err.strip().endswith("; judge it again")


def test_an_empty_leaderboard_says_how_to_fill_it(tmp_path: Path) -> None:
    """The next command."""
    with pytest.raises(ConfigError, match=r"kernelmill judge DIR --measure --submission NAME makes one$"):
        leaderboard(tmp_path, BoardFilter())


def test_links_of_the_page_are_relative(tmp_path: Path) -> None:
    """From wherever the page is written."""
    made = submission("one", problem("x", measured(2.0)))
    put_submission(tmp_path, made, candidates_csv(made))
    page = tmp_path / "elsewhere" / "page.html"
    write_page(page, boards([made]), csv=tmp_path / "board.csv", root=tmp_path)
    text = page.read_text()
    assert 'href="../board.csv"' in text
    assert f'href="../submissions/{submission_folder(tmp_path, made).name}/candidates.csv"' in text


def test_lines_for_the_terminal() -> None:
    """Rank, page, and MLflow's page."""
    done = HandedIn(
        name="one",
        rank="1–2",
        ranked=4,
        table="t",
        page="p.html",
        compare="http://x",
        compared=3,
        problems=200,
        unanswered=190,
        levels=("level1", "level2"),
    )
    assert submission_lines(done) == [
        "submitted one: rank 1–2 of 4 (kernelmill leaderboard)",
        "scored on 200 problems of level1, level2; 190 without a candidate count as failed",
        "ranking   p.html",
        "compare   http://x (3 submissions; kernelmill ui)",
    ]
