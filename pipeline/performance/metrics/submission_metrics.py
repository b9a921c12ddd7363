"""Metrics of a submission's scores and of its candidates, each declared once.

The leaderboard's CSV, its glossary and MLflow follow from the declarations. Those with a baseline in their
name are families: one member per baseline.
"""

from collections.abc import Callable, Iterable, Iterator

from pipeline.performance.metrics.metric import MICROSECONDS, ColumnType, MetricDeclaration
from pipeline.performance.quantities import baseline as baseline_title
from pipeline.performance.submission_scores import THRESHOLDS, BaselineScores, Scores
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.scored import MeasuredSpeedup, ScoredCandidate

Interval = ConfidenceInterval | None


class ScoreMetric(MetricDeclaration, frozen=True, kw_only=True):
    """A metric of a submission, or of its problems of one level or category."""

    value: Callable[[Scores], object]


class CandidateMetric(MetricDeclaration, frozen=True, kw_only=True):
    """A metric of one candidate of a submission."""

    value: Callable[[ScoredCandidate], object]


def score_metrics(baselines: Iterable[str], ks: Iterable[int]) -> tuple[ScoreMetric, ...]:
    """All metrics of scores against some baselines, with some numbers of samples."""
    numbers = [k for k in ks if k > 1]  # of one sample they are the scores themselves
    return (
        _count("problems", "Valid problems", lambda scores: scores.problems),
        _count("excluded", "Invalid problems, which are not scored", lambda scores: scores.excluded),
        _count("unanswered", "Problems without a sample: failed", lambda scores: scores.unanswered),
        _count("samples", "Candidates", lambda scores: scores.samples),
        *_shares(
            "correct", "Correctness rate: share of problems solved, pass@1", lambda scores: scores.correct
        ),
        *_shares(
            "correct_reduced",
            "Share correct on reduced sizes, where the declared ones could not be tried; not in `correct`",
            lambda scores: scores.reduced,
        ),
        *(metric for k in numbers for metric in _pass_at(k)),
        *(metric for name in baselines for metric in _of_baseline(name, numbers)),
    )


def candidate_metrics(baselines: Iterable[str]) -> tuple[CandidateMetric, ...]:
    """All metrics of a candidate against some baselines."""
    return (
        _time("", "Time of one call", lambda time: time.value),
        _time("_low", "Lower end of its interval", lambda time: time.low),
        _time("_high", "Upper end of its interval", lambda time: time.high),
        *(metric for name in baselines for metric in _speedup(name)),
        CandidateMetric(
            name="estimate_bound_share",
            type="double",
            unit="share",
            meaning="Estimate: least time for the operators of Model on this hardware, over the time",
            value=lambda candidate: candidate.time.estimated_bound_share if candidate.time else None,
            mlflow="estimate/bound_share",
        ),
    )


def _time(end: str, meaning: str, value: Callable[[ConfidenceInterval], float]) -> CandidateMetric:
    return CandidateMetric(
        name=f"median_seconds{end}",
        type="double",
        unit="s",
        meaning=meaning,
        value=lambda candidate: value(candidate.time.seconds) if candidate.time else None,
        mlflow=f"time/{end.removeprefix('_') or 'median'}_us",
        mlflow_scale=MICROSECONDS,
    )


def _speedup(name: str) -> Iterator[CandidateMetric]:
    def declared(
        column: str, type_: ColumnType, meaning: str, value: Callable[[MeasuredSpeedup], object]
    ) -> CandidateMetric:
        def found(candidate: ScoredCandidate) -> object:
            measured = candidate.time.against(name) if candidate.time else None
            return None if measured is None else value(measured)

        group, _, end = column.partition(".")
        return CandidateMetric(
            name=f"{group}.{name}{'.' if end else ''}{end}",
            type=type_,
            unit="ratio" if type_ == "double" else "",
            meaning=meaning,
            value=found,
            mlflow=f"{group}/{name}{'_' if end else ''}{end}",
        )

    title = baseline_title(name)
    yield declared(
        "speedup", "double", f"Time of {title} over the candidate's", lambda each: each.speedup.value
    )
    yield declared("speedup.low", "double", "Lower end of its interval", lambda each: each.speedup.low)
    yield declared("speedup.high", "double", "Upper end of its interval", lambda each: each.speedup.high)
    yield declared("verdict", "string", "Whether it is faster, by the interval", lambda each: each.verdict)


def _count(name: str, meaning: str, value: Callable[[Scores], object]) -> ScoreMetric:
    return ScoreMetric(name=name, type="int64", meaning=meaning, value=value)


def _shares(
    name: str, meaning: str, value: Callable[[Scores], Interval], *, of: str = "", unit: str = "share"
) -> Iterator[ScoreMetric]:
    """A value and the ends of its interval: `fast_1.eager.low` in tables, `eager/fast_1_low` in MLflow."""
    parts: dict[str, Callable[[ConfidenceInterval], float]] = {
        "": lambda found: found.value,
        "low": lambda found: found.low,
        "high": lambda found: found.high,
    }
    for end, part in parts.items():
        yield ScoreMetric(
            name=".".join(filter(None, (name, of, end))),
            type="double",
            unit=unit,
            meaning={"": meaning, "low": "Lower end of its interval", "high": "Upper end of its interval"}[
                end
            ],
            value=_part(value, part),
            mlflow="/".join(filter(None, (of, "_".join(filter(None, (name, end)))))),
        )


def _part(
    value: Callable[[Scores], Interval], part: Callable[[ConfidenceInterval], float]
) -> Callable[[Scores], object]:
    def found(scores: Scores) -> object:
        interval = value(scores)
        return None if interval is None else part(interval)

    return found


def _pass_at(k: int) -> Iterator[ScoreMetric]:
    def value(scores: Scores) -> Interval:
        return next((each.correct for each in scores.best_of if each.k == k), None)

    yield from _shares(
        f"correct_at_{k}", f"pass@{k}: share of problems that the best of {k} samples solves", value
    )


def _of_baseline(name: str, ks: Iterable[int]) -> Iterator[ScoreMetric]:
    def of(value: Callable[[BaselineScores], Interval]) -> Callable[[Scores], Interval]:
        def found(scores: Scores) -> Interval:
            against = scores.against(name)
            return None if against is None else value(against)

        return found

    title = baseline_title(name)
    for threshold in THRESHOLDS:
        faster = (
            f"faster than {title}" if threshold == 1 else f"more than {threshold:g} times as fast as {title}"
        )
        what = faster if threshold else "correct"
        yield from _shares(
            f"fast_{threshold:g}",
            f"Share of problems solved by a sample that is {what}; failures count as not fast",
            of(_share_at(threshold)),
            of=name,
        )
        yield from _shares(
            f"fast_{threshold:g}_sure",
            "The same, if the whole interval of the speed-up says so",
            of(_sure_at(threshold)),
            of=name,
        )
    for k in ks:
        for threshold in THRESHOLDS[1:]:  # of 0 it is pass@k
            yield from _shares(
                f"fast_{threshold:g}_at_{k}",
                f"fast_{threshold:g}@{k}: the same for the best of {k} samples",
                of(_best_of(k, threshold)),
                of=name,
            )
    yield from _shares(
        "geomean_all",
        f"Geometric mean of the speed-ups over {title}; failures and slower samples count as 1",
        of(lambda scores: scores.mean_all),
        of=name,
        unit="ratio",
    )
    yield from _shares(
        "geomean_correct",
        f"Geometric mean of the measured speed-ups over {title}; failures are left out",
        of(lambda scores: scores.mean_correct),
        of=name,
        unit="ratio",
    )
    yield from _shares(
        "held_out_lost",
        "Of the candidates that are faster on the declared sizes, the share that is not on others",
        of(lambda scores: scores.held_out_lost),
        of=name,
    )


def _share_at(threshold: float) -> Callable[[BaselineScores], Interval]:
    return lambda scores: scores.at(threshold).share


def _sure_at(threshold: float) -> Callable[[BaselineScores], Interval]:
    return lambda scores: scores.at(threshold).sure


def _best_of(k: int, threshold: float) -> Callable[[BaselineScores], Interval]:
    def found(scores: BaselineScores) -> Interval:
        wanted = (k, threshold)
        shares = (each.share for each in scores.fast_best_of if (each.k, each.threshold) == wanted)
        return next(shares, None)

    return found
