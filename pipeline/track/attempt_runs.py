"""Logs what agents submitted: an attempt and its source in, one MLflow run out.

Several servers may log at once; each run is created, filled and finished in one go, so a kill leaves nothing
that counts.
"""

import datetime
import time
from pathlib import Path

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.record import to_json
from pipeline.records.results.attempts import Attempt
from pipeline.track.runs.run_writing import put_artifacts
from pipeline.track.stores.mlflow_store import exclusive, experiment_id, open_store, understandable
from pipeline.track.stores.retries import patiently

SUFFIX = "-agents"
"""Of the experiment's name."""
_LONGEST_TAG = 4000  # characters; MLflow takes 5,000 at least


def log_attempt(tracking: Tracking, root: Path, attempt: Attempt, source: str) -> str:
    """Log one attempt; returns the id of its run.

    Raises
    ------
    TrackingError
        MLflow cannot be reached, or refuses it.
    """
    store = open_store(tracking, root)

    def log() -> str:
        from mlflow.entities import Metric, Param

        experiment = experiment_id(store, f"{tracking.experiment}{SUFFIX}", {})
        started = int(datetime.datetime.fromisoformat(attempt.created).timestamp() * 1000)
        made = store.client.create_run(
            experiment,
            start_time=started,
            run_name=f"{attempt.verdict.problem} {attempt.client} {attempt.number}",
            tags=_tags(attempt),
        )
        store.client.log_batch(
            made.info.run_id,
            metrics=[Metric(name, value, started, 0) for name, value in _metrics(attempt).items()],
            params=[Param(name, value) for name, value in _parameters(attempt).items()],
        )
        documents = {"attempt.json": to_json(attempt), "source.py": source.encode(errors="replace")}
        put_artifacts(store, made.info, (), documents)
        store.client.set_terminated(made.info.run_id, end_time=int(time.time() * 1000))
        return str(made.info.run_id)

    with understandable(store.uri), exclusive(store):
        return patiently(log, lambda: 0)


def _tags(attempt: Attempt) -> dict[str, str]:
    return {
        "conversation": attempt.conversation,
        "outcome": attempt.verdict.outcome.value,
        "reason": attempt.verdict.reason[:_LONGEST_TAG],
    }


def _parameters(attempt: Attempt) -> dict[str, str]:
    return {
        "client": attempt.client,
        "problem": attempt.verdict.problem,
        "attempt": str(attempt.number),
        "order": str(attempt.order),
        "hardware": attempt.hardware,
        "source": attempt.source,
        "verdict": attempt.verdict.id,
    }


def _metrics(attempt: Attempt) -> dict[str, float]:
    found = {"judged_seconds": attempt.seconds}
    if attempt.verdict.share is not None:
        found["error_share"] = attempt.verdict.share
    if attempt.measured is not None:
        found["seconds"] = attempt.measured.seconds.value
        found |= {f"speedup_over_{each.baseline}": each.speedup.value for each in attempt.measured.speedups}
    return found
