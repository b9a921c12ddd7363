"""A judged submission into MLflow: a run for it and one per candidate, the leaderboard as artifact, links."""

from pathlib import Path

from pipeline.performance.metrics.submission_metrics import candidate_metrics, score_metrics
from pipeline.performance.quantities import digits, share
from pipeline.performance.submission_scores import scores
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.record import Record
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.scored import Submission
from pipeline.records.results.tracked import TrackedCounts
from pipeline.track import chart_pages, mlflow_ui
from pipeline.track.experiment_notes import KEPT, NOTE, units
from pipeline.track.ingest import KIND
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.idempotency import IngestLedger, log_runs
from pipeline.track.runs.run_writing import RunContext, tag_run
from pipeline.track.runs.submission_run import candidate_runs, shared_tags, submission_run, task_name
from pipeline.track.runs.sweep_run import attach_report
from pipeline.track.stores.mlflow_store import (
    MlflowStore,
    exclusive,
    experiment_id,
    open_store,
    set_experiment_tags,
    understandable,
)
from pipeline.track.stores.retries import patiently

SUBMISSIONS, CANDIDATES = "-submissions", "-candidates"
ABOUT = {
    SUBMISSIONS: "One run per submission of candidates: scores, leaderboard.",
    CANDIDATES: "One run per judged candidate of a submission: verdict, time, source.",
}
"""Suffix of the experiment's name -> what it holds."""
COMPARED = 100
"""Submissions that the compare page shows at most, the best first."""


class SubmissionFiles(Record, frozen=True, kw_only=True):
    """What of a submission is in files."""

    table: Path
    """A row per candidate."""
    page: Path | None
    """The leaderboard as it is now."""


class TrackedSubmission(Record, frozen=True, kw_only=True):
    """Where a submission is in MLflow."""

    run: str
    candidates: TrackedCounts
    page: str
    """Address of its run."""
    compare: str
    """Address of the compare page of all submissions on the same problems and hardware."""
    compared: int
    candidate_table: str
    """Address of its candidates as a table."""


def track_submission(
    tracking: Tracking, submission: Submission, files: SubmissionFiles, root: Path
) -> TrackedSubmission:
    """Log it while nobody else logs; what is there already stays.

    Raises
    ------
    TrackingError
        MLflow does not answer.
    """
    store = open_store(tracking, root)
    ledger = IngestLedger()

    def in_turn() -> TrackedSubmission:
        with exclusive(store) as check:
            ledger.check = check
            return ingest_submission(store, submission, files, tracking.experiment, ledger)

    with understandable(store.uri):
        return patiently(in_turn, lambda: len(ledger))


def ingest_submission(
    store: MlflowStore, submission: Submission, files: SubmissionFiles, name: str, ledger: IngestLedger
) -> TrackedSubmission:
    """The same with an open store; `name` is the beginning of the experiments' names."""
    experiments = {suffix: experiment_id(store, f"{name}{suffix}", KIND) for suffix in ABOUT}
    own = submission_run(submission, files.table)
    logged = log_runs(store, [own], _place(submission, experiments[SUBMISSIONS], {}), ledger)
    run = logged.runs[own.slot]
    place = _place(submission, experiments[CANDIDATES], {"submission_run": run})
    candidates = log_runs(store, candidate_runs(submission), place, ledger)
    if files.page is not None:
        attach_report(store, run, files.page)
    baseline = next(iter(submission.baselines), None)
    ui = mlflow_ui.base(store.uri)
    compare, compared = mlflow_ui.compare(
        ui, experiments[SUBMISSIONS], _comparable(store, experiments[SUBMISSIONS], submission, baseline)
    )
    tracked = TrackedSubmission(
        run=run,
        candidates=candidates.counts,
        page=mlflow_ui.run(ui, experiments[SUBMISSIONS], run),
        compare=compare,
        compared=compared,
        candidate_table=chart_pages.candidates(store, experiments[CANDIDATES], run, baseline),
    )
    tag_run(store, run, {NOTE: mlflow_names.tag(_note(submission, tracked))})
    table = chart_pages.submissions(store, experiments[SUBMISSIONS], baseline)
    _describe(store, experiments, table, submission)
    return tracked


def _place(submission: Submission, experiment: str, tags: dict[str, str]) -> RunContext:
    return RunContext(
        experiment=experiment,
        task_name=task_name(submission),
        tags=shared_tags(submission) | tags,
        sweep=None,
        dataset=None,
        task_document=None,
    )


def _comparable(
    store: MlflowStore, experiment: str, submission: Submission, baseline: str | None
) -> list[str]:
    """Runs of all submissions on the same problems and target, the best first."""
    metric = "correct" if baseline is None else f"{baseline}/fast_1"
    found = store.client.search_runs(
        [experiment],
        f"tags.problem_set = '{submission.problem_set}'",
        order_by=[f"metrics.`{metric}` DESC"],
        max_results=COMPARED,
    )
    where = {"hardware": submission.hardware, "device": submission.device}
    return [run.info.run_id for run in found if where.items() <= run.data.tags.items()]


def _note(submission: Submission, tracked: TrackedSubmission) -> str:
    """The run's text: links above the fold, then the scores."""
    found = scores(submission.problems, submission.baselines)
    lines = [
        f"[Compare with the others]({mlflow_ui.within(tracked.compare)}) · "
        f"[its candidates]({mlflow_ui.within(tracked.candidate_table)}) · "
        "leaderboard.html among the artifacts",
        "",
    ]
    if found is None:
        return "\n".join([*lines, "No valid problem."])
    lines += [f"{found.problems} problems, correct: {_interval(found.correct)}", ""]
    if found.baselines:
        lines += ["| baseline | fast_1 | sure | mean speed-up, all problems |", "|---|---|---|---|"]
    for each in found.baselines:
        first, mean = each.at(1.0), digits(each.mean_all.value)
        lines.append(f"| {each.baseline} | {_interval(first.share)} | {share(first.sure.value)} | {mean}x |")
    return "\n".join(lines)


def _interval(found: ConfidenceInterval) -> str:
    return f"{share(found.value)} ({share(found.low)} to {share(found.high)})"


def _describe(store: MlflowStore, experiments: dict[str, str], table: str, submission: Submission) -> None:
    """Texts of the experiments, unless somebody has edited them."""
    baselines = submission.baselines
    declared = {
        SUBMISSIONS: units(score_metrics(baselines, [])),
        CANDIDATES: units(candidate_metrics(baselines)),
    }
    link = f"[All submissions as a table]({mlflow_ui.within(table)})"
    for suffix, experiment in experiments.items():
        known = store.client.get_experiment(experiment).tags.get(NOTE, "")
        if not known or KEPT in known:
            text = "\n".join([link, "", f"{ABOUT[suffix]} {KEPT}", "", *declared[suffix]])
            set_experiment_tags(store, experiment, {NOTE: text})
