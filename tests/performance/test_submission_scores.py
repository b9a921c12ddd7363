"""Scores of submissions against values computed by hand, and what must hold for all."""

import itertools
import math
import random

import msgspec
import pytest

from pipeline.performance.submission_scores import (
    THRESHOLDS,
    BaselineScores,
    Scores,
    at_k,
    best_of_share,
    fast,
    ks_of,
    proportion,
    scores,
    scores_by,
    surely_fast,
)
from pipeline.records.outcome import Outcome
from pipeline.records.results.scored import CandidateTime, ScoredCandidate, ScoredProblem
from tests.performance.submissions import failed, measured, problem, ratio

FOUR = (
    problem("a", measured(3.0), level="1", category="norm"),
    problem("b", measured(0.9), level="1"),
    problem("c", failed(), level="2", category="norm"),
    problem("d", level="2"),
)
"""Fast, slow, wrong, and not answered."""


def found(problems: tuple[ScoredProblem, ...]) -> Scores:
    """Against eager."""
    result = scores(problems, ["eager"])
    assert result is not None
    return result


def eager(problems: tuple[ScoredProblem, ...]) -> BaselineScores:
    """Only those of time."""
    return found(problems).baselines[0]


@pytest.mark.parametrize(
    ("hits", "low", "high"), [(0, 0.0, 0.0189), (4, 0.0078, 0.0503), (10, 0.0274, 0.0896)]
)
def test_interval_of_a_share(hits: int, low: float, high: float) -> None:
    """Of 200: as scipy's `binomtest(…).proportion_ci(method='wilson')` gives it."""
    assert proportion(hits, 200) == pytest.approx((low, high), abs=2e-4)


def test_counts() -> None:
    """What was answered and how it ended."""
    result = found(FOUR)
    assert (result.problems, result.unanswered, result.samples, result.excluded) == (4, 1, 3, 0)
    assert result.outcomes == {"passed": 2, "wrong_value": 1}


def test_correctness_rate_counts_what_is_missing() -> None:
    """Two of four; scipy's Wilson interval."""
    rate = found(FOUR).correct
    assert (rate.value, rate.low, rate.high) == pytest.approx((0.5, 0.1500, 0.8500), abs=1e-4)


def test_fast_p_by_hand() -> None:
    """Speed-ups of 3 and 0.9 among four problems."""
    shares = {each.threshold: each.share.value for each in eager(FOUR).fast}
    assert shares == {0.0: 0.5, 0.8: 0.5, 1.0: 0.25, 1.5: 0.25, 2.0: 0.25, 4.0: 0.0}


def test_an_interval_that_holds_the_threshold_is_not_sure() -> None:
    """1.03 within 5 % is fast and not surely fast; within 0.1 % it is both."""
    for spread, sure in ((0.05, 0.0), (0.001, 1.0)):
        (one,) = (
            each for each in eager((problem("a", measured(1.03, spread=spread)),)).fast if each.threshold == 1
        )
        assert (one.share.value, one.sure.value) == (1.0, sure)


def test_a_speedup_at_the_threshold_is_not_above_it() -> None:
    """fast_p asks for more than p."""
    sample = measured(2.0)
    assert not fast("eager", 2.0)(sample)
    assert fast("eager", 1.99)(sample)


def test_geometric_means_by_hand() -> None:
    """Of all: 3, 1 (slower), 1 (wrong), 1 (missing); of the correct ones: 3 and 0.9."""
    result = eager(FOUR)
    assert result.mean_all.value == pytest.approx(3 ** (1 / 4))
    assert result.mean_correct is not None
    assert result.mean_correct.value == pytest.approx(math.sqrt(3 * 0.9))


def test_nothing_measured_has_no_mean() -> None:
    """A mean of nothing is absent; of all problems it is 1."""
    result = eager((problem("a", failed()),))
    assert result.mean_correct is None
    assert result.mean_all.value == 1.0


def test_samples_of_a_problem_count_as_one_problem() -> None:
    """Two of four samples fast, and one of one: three quarters, not three fifths."""
    several = problem("a", *(measured(2.0, sample=i) for i in range(2)), *(failed(sample=i) for i in (2, 3)))
    assert eager((several, problem("b", measured(2.0)))).at(1.0).share.value == pytest.approx(0.75)


@pytest.mark.parametrize(("n", "c"), [(5, 0), (5, 1), (5, 3), (6, 6), (7, 2)])
def test_at_k_is_the_mean_over_all_draws(n: int, c: int) -> None:
    """The estimator of Chen et al. against all subsets."""
    wins = [True] * c + [False] * (n - c)
    for k in range(1, n + 1):
        draws = list(itertools.combinations(wins, k))
        assert at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_at_k_of_fewer_samples_takes_them_all() -> None:
    """A lower bound; without any it is 0."""
    assert (at_k(2, 1, 8), at_k(2, 0, 8), at_k(0, 0, 8)) == (1.0, 0.0, 0.0)


def test_numbers_of_samples() -> None:
    """Powers of two, and all."""
    assert ks_of([problem("a", *(failed(sample=i) for i in range(6)))]) == [1, 2, 4, 6]
    assert ks_of([problem("a")]) == [1]


def test_best_of_k_by_hand() -> None:
    """One of three samples is correct and fast: 1/3, 2/3, 1."""
    samples = (measured(2.0, sample=0), failed(sample=1), failed(sample=2))
    result = found((problem("a", *samples),))
    assert [each.k for each in result.best_of] == [1, 2, 3]
    assert [each.correct.value for each in result.best_of] == pytest.approx([1 / 3, 2 / 3, 1.0])
    fast_1 = [each.share.value for each in result.baselines[0].fast_best_of if each.threshold == 1]
    assert fast_1 == pytest.approx([1 / 3, 2 / 3, 1.0])


def test_lost_on_held_out_sizes() -> None:
    """Of three that are faster and were measured on others, one is not on all of them."""
    problems = (
        problem("a", measured(2.0, held_out=("faster", "faster"))),
        problem("b", measured(2.0, held_out=("faster", "indistinguishable"))),
        problem("c", measured(2.0, held_out=("failed",))),
        problem("d", measured(2.0)),
        problem("e", measured(0.5, held_out=("slower",))),
    )
    result = eager(problems)
    assert result.held_out == 3
    assert result.held_out_lost is not None
    assert result.held_out_lost.value == pytest.approx(2 / 3)


def test_invalid_problems_count_for_nobody() -> None:
    """They are named, and nothing else."""
    invalid = ScoredProblem(
        name="x", digest="x", excluded="no class Model", samples=(failed(Outcome.BAD_PROBLEM),)
    )
    result = found((*FOUR, invalid))
    assert (result.problems, result.excluded) == (4, 1)
    assert result.correct == found(FOUR).correct
    assert scores([invalid], ["eager"]) is None


def test_reduced_sizes_are_counted_apart() -> None:
    """They are not known to be correct on the declared ones."""
    result = found((problem("a", failed(Outcome.PASSED_REDUCED)), problem("b", measured(2.0))))
    assert (result.correct.value, result.reduced.value) == (0.5, 0.5)


def test_groups() -> None:
    """Each level and category has scores of its own; problems without one have none."""
    assert {name: each.problems for name, each in scores_by(FOUR, "level", ["eager"]).items()} == {
        "1": 2,
        "2": 2,
    }
    assert {name: each.problems for name, each in scores_by(FOUR, "category", []).items()} == {"norm": 2}


def test_each_baseline_has_its_own() -> None:
    """Twice as fast as eager may be slower than torch.compile; one that lacks it is not fast against it."""
    result = scores(
        [problem("a", measured(2.0, compiled=0.7)), problem("b", measured(2.0))], ["eager", "compile"]
    )
    assert result is not None
    assert [each.at(1.0).share.value for each in result.baselines] == [1.0, 0.0]


def made_up(seed: int) -> tuple[ScoredProblem, ...]:
    """Some problems with some samples."""
    draw = random.Random(seed)

    def sample(number: int) -> ScoredCandidate:
        if draw.random() < 0.3:
            return failed(sample=number)
        return measured(math.exp(draw.gauss(0.1, 0.8)), spread=draw.random() / 3, sample=number)

    return tuple(
        problem(str(place), *(sample(number) for number in range(draw.randrange(4))))
        for place in range(draw.randrange(1, 12))
    )


@pytest.mark.parametrize("seed", range(20))
def test_fast_p_falls_with_p_and_rises_with_k(seed: int) -> None:
    """And what is sure is never more; values lie in their intervals."""
    problems = made_up(seed)
    result = eager(problems)
    for values in ([each.share.value for each in result.fast], [each.sure.value for each in result.fast]):
        assert values == sorted(values, reverse=True)
    assert all(each.sure.value <= each.share.value for each in result.fast)
    for threshold in THRESHOLDS:
        by_k = [each.share.value for each in result.fast_best_of if each.threshold == threshold]
        assert all(after >= before - 1e-12 for before, after in itertools.pairwise(by_k))
    for each in result.fast:
        assert each.share.low <= each.share.value <= each.share.high
    assert result.mean_all.low <= result.mean_all.value <= result.mean_all.high


@pytest.mark.parametrize("seed", range(20))
def test_a_failure_never_raises_a_score(seed: int) -> None:
    """Each sample in turn is replaced by a failure."""
    problems = made_up(seed)
    before = eager(problems)
    for place, one in enumerate(problems):
        for number in range(len(one.samples)):
            samples = (*one.samples[:number], failed(sample=number), *one.samples[number + 1 :])
            after = eager((*problems[:place], problem(one.name, *samples), *problems[place + 1 :]))
            assert after.mean_all.value <= before.mean_all.value + 1e-12
            for ours, theirs in zip(after.fast, before.fast, strict=True):
                assert ours.share.value <= theirs.share.value
                assert ours.sure.value <= theirs.sure.value


def test_equal_speedups_are_in_the_interval_of_their_mean() -> None:
    """Forty copies: the interval holds their speed-up, and is narrower than that of one."""
    one, forty = (eager(tuple(problem(str(i), measured(1.5)) for i in range(n))).mean_all for n in (1, 40))
    for each in (one, forty):
        assert each.value == pytest.approx(1.5)
        assert each.low < 1.5 < each.high
    assert one.high - one.low == pytest.approx(2 * 1.5 * 0.0198, rel=0.1)
    assert forty.high - forty.low < (one.high - one.low) / 4


def test_one_candidate_has_its_measured_interval() -> None:
    """However far its ends are from the value."""
    sample = measured(1.5)
    assert sample.time is not None
    (found,) = sample.time.speedups
    lopsided = msgspec.structs.replace(found.speedup, low=0.9, high=1.6)
    time = msgspec.structs.replace(sample.time, speedups=(msgspec.structs.replace(found, speedup=lopsided),))
    mean = eager((problem("one", msgspec.structs.replace(sample, time=time)),)).mean_all
    assert (mean.low, mean.high) == (pytest.approx(0.9, rel=0.02), pytest.approx(1.6, rel=0.02))


def test_a_score_can_be_computed_again() -> None:
    """The same problems give the same interval."""
    assert eager(FOUR) == eager(FOUR)


def test_sure_needs_the_verdict() -> None:
    """Two processes of the same code may differ by 5 %: the verdict knows, the interval does not."""
    sample = measured(1.05, spread=0.001)
    assert sample.time is not None
    (found,) = sample.time.speedups
    near = type(found)(baseline="eager", speedup=found.speedup, verdict="indistinguishable")
    time = CandidateTime(seconds=ratio(1e-3), speedups=(near,))
    doubtful = ScoredCandidate(solution="x", sample=0, outcome=Outcome.PASSED, time=time)
    assert surely_fast("eager", 1.0)(sample)
    assert not surely_fast("eager", 1.0)(doubtful)
    assert surely_fast("eager", 0.8)(doubtful)


def test_no_time_without_a_pass() -> None:
    """A record that says both cannot be made."""
    with pytest.raises(
        ValueError, match="a time of a candidate with the outcome 'tampered', expected 'passed'"
    ):
        ScoredCandidate(
            solution="x",
            sample=0,
            outcome=Outcome.TAMPERED,
            time=CandidateTime(seconds=ratio(1.0), speedups=()),
        )


def test_shares_of_one_problem_are_wide() -> None:
    """One of one is anything above a fifth."""
    assert best_of_share([problem("a", measured(2.0))], fast("eager", 1.0), k=1).low == pytest.approx(
        0.2065, abs=1e-4
    )
