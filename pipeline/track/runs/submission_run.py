"""Lays out a submission as MLflow runs: Submission in, one run for it and one per candidate out."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipeline.performance.metrics.metric import MetricDeclaration
from pipeline.performance.metrics.submission_metrics import candidate_metrics, score_metrics
from pipeline.performance.submission_scores import Scores, ks_of, scores, scores_by
from pipeline.records.record import Record, digest
from pipeline.records.results.scored import ScoredCandidate, ScoredProblem, Submission
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.variant_run import VariantRun

LAYOUT = 1
"""Raise it when this module writes something else: runs are then logged again."""
Entries = tuple[dict[str, float], dict[str, str]]


class CandidateResult(Record, frozen=True, kw_only=True):
    """result.json of a candidate's run."""

    id: str
    submission: str
    hardware: str
    device: str
    problem: str
    level: str | None
    category: str | None
    candidate: ScoredCandidate


class SubmissionResult(Record, frozen=True, kw_only=True):
    """result.json of a submission's run."""

    id: str
    submission: str
    hardware: str
    device: str
    scores: Scores | None
    """None if none of its problems is valid."""
    levels: dict[str, Scores]
    categories: dict[str, Scores]


def task_name(submission: Submission) -> str:
    """The submission in one word that MLflow's filters can take."""
    return mlflow_names.key(f"{submission.name}/{submission.hardware}/{submission.device}")


def shared_tags(submission: Submission) -> dict[str, str]:
    """Tags of the submission's run and of its candidates'; they say nothing about what was found."""
    git = submission.provenance.git
    tags = {
        "submission": submission.name,
        "hardware": submission.hardware,
        "device": submission.device,
        "verify": submission.verify,
        "problem_set": submission.problem_set,
        "status": "measured" if submission.measured else "judged",
    }
    return _tags(tags | ({"mlflow.source.git.commit": git} if git else {}))


def submission_run(submission: Submission, table: Path) -> VariantRun:
    """The run of a submission; `table` has a row per candidate."""
    baselines = submission.baselines
    result = SubmissionResult(
        id=submission.key,
        submission=submission.name,
        hardware=submission.hardware,
        device=submission.device,
        scores=scores(submission.problems, baselines),
        levels=scores_by(submission.problems, "level", baselines),
        categories=scores_by(submission.problems, "category", baselines),
    )
    metrics, tags = _score_entries(result, baselines, ks_of(submission.problems))
    created = _milliseconds(submission)
    return VariantRun(
        slot=submission.key,
        result=digest([LAYOUT, _signature(baselines), submission.content]),
        name=f"{submission.name} · {submission.hardware}"[: mlflow_names.NAME_LENGTH],
        params=_params({"submission": submission.name}),
        metrics=_ranking_first(metrics, baselines),
        tags=_tags(tags | {"baselines": " ".join(baselines)}),
        files=((table, ""),),
        record=result,
        started=created,
        ended=created,
    )


def candidate_runs(submission: Submission) -> list[VariantRun]:
    """The runs of its candidates, in the order of the problems."""
    return [
        _candidate_run(submission, problem, sample)
        for problem in submission.problems
        for sample in problem.samples
    ]


def _candidate_run(submission: Submission, problem: ScoredProblem, sample: ScoredCandidate) -> VariantRun:
    declared = candidate_metrics(submission.baselines)
    metrics, tags = _entries((metric, metric.value(sample)) for metric in declared)
    created = _milliseconds(submission)
    about = {
        "outcome": str(sample.outcome),
        "reason": sample.reason,
        "id": sample.id,
        "level": problem.level or "",
        "category": problem.category or "",
    }
    params = {
        "problem": problem.name,
        "solution": sample.solution,
        "submission": submission.name,
        "sample": sample.sample,
    }
    source = Path(sample.path)
    return VariantRun(
        slot=digest([submission.key, problem.name, sample.solution]),
        result=digest([LAYOUT, _signature(submission.baselines), problem.digest, submission.verify, sample]),
        name=f"{problem.name} {sample.solution} · {submission.name}"[: mlflow_names.NAME_LENGTH],
        params=_params(params),
        metrics={mlflow_names.key(name): value for name, value in metrics.items()},
        tags=_tags(about | tags),
        files=((source, "source"),) if sample.path else (),
        record=CandidateResult(
            id=sample.id,
            submission=submission.name,
            hardware=submission.hardware,
            device=submission.device,
            problem=problem.name,
            level=problem.level,
            category=problem.category,
            candidate=sample,
        ),
        documents={"reason.txt": f"{sample.reason}\n".encode()} if sample.reason else {},
        started=created,
        ended=created,
    )


def _score_entries(result: SubmissionResult, baselines: Sequence[str], ks: Sequence[int]) -> Entries:
    """Of all problems every score; of a level or category what ranks, as all would be hundreds."""
    found: list[tuple[MetricDeclaration, object]] = []
    declared = score_metrics(baselines, ks)
    if result.scores is not None:
        found += [(metric, metric.value(result.scores)) for metric in declared]
    metrics, tags = _entries(found)
    for group, named in (("level", result.levels), ("category", result.categories)):
        for name, each in named.items():
            metrics[f"{group}_{name}/correct"] = each.correct.value
            for against in each.baselines:
                metrics[f"{group}_{name}/{against.baseline}_fast_1"] = against.at(1.0).share.value
    return metrics, tags


def _entries(found: Iterable[tuple[MetricDeclaration, object]]) -> Entries:
    """Metrics and tags by their names in MLflow; what is absent is left out, never 0."""
    metrics: dict[str, float] = {}
    tags: dict[str, str] = {}
    for metric, value in found:
        if value is None:
            continue
        if not metric.is_mlflow_metric:
            tags[metric.mlflow_name] = str(value)
        elif (number := mlflow_names.number(value)) is not None:
            metrics[metric.mlflow_name] = number * metric.mlflow_scale
    return metrics, tags


def _ranking_first(metrics: Mapping[str, float], baselines: Sequence[str]) -> dict[str, float]:
    """MLflow's compare page preselects the metric that was logged first: what ranks."""
    first = f"{baselines[0]}/fast_1" if baselines else "correct"
    ordered = sorted(metrics.items(), key=lambda pair: pair[0] != first)
    return {mlflow_names.key(name): value for name, value in ordered}


def _signature(baselines: Sequence[str]) -> str:
    """Changes with the declared metrics."""
    declared: list[MetricDeclaration] = [*score_metrics(baselines, [2]), *candidate_metrics(baselines)]
    return digest([[each.mlflow_name, each.unit] for each in declared])


def _params(values: Mapping[str, object]) -> dict[str, str]:
    return {name: mlflow_names.param(value) for name, value in values.items()}


def _tags(values: Mapping[str, str]) -> dict[str, str]:
    """Without those that say nothing."""
    return {mlflow_names.key(name): mlflow_names.tag(value) for name, value in values.items() if value}


def _milliseconds(submission: Submission) -> int:
    return round(datetime.datetime.fromisoformat(submission.provenance.created).timestamp() * 1000)
