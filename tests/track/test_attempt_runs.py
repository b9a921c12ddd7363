"""Attempts of agents in MLflow: one finished run each, with its source."""

from pathlib import Path

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.outcome import Outcome
from pipeline.records.results.attempts import Attempt
from pipeline.records.results.judged import Verdict
from pipeline.track.attempt_runs import log_attempt
from pipeline.track.stores.mlflow_store import open_store

TRACKING = Tracking(name="test", description="", enabled=True, uri="embedded", experiment="kernels")


def test_an_attempt_is_a_run(tmp_path: Path) -> None:
    """Who, what, how it ended, and the text that was submitted."""
    verdict = Verdict(
        problem="double", solution="s", id="0123", outcome=Outcome.WRONG_VALUE, reason="got 1", share=2.5
    )
    attempt = Attempt(
        client="one",
        conversation="c",
        order=4,
        number=2,
        created="2026-01-01T00:00:00+00:00",
        hardware="local",
        problem_digest="p",
        problem_source="t",
        source="s",
        verdict=verdict,
        known=False,
        seconds=1.5,
    )
    identity = log_attempt(TRACKING, tmp_path, attempt, "class ModelNew: ...\n")
    client = open_store(TRACKING, tmp_path).client
    run = client.get_run(identity)
    assert client.get_experiment(run.info.experiment_id).name == "kernels-agents"
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "double one 2"
    assert run.data.tags["outcome"] == "wrong_value"
    assert run.data.params["order"] == "4"
    assert run.data.metrics == {"judged_seconds": 1.5, "error_share": 2.5}
    assert {each.path for each in client.list_artifacts(identity)} == {"attempt.json", "source.py"}
