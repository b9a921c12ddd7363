"""Writes many finished runs into a database in one transaction: runs and their tags in, their ids out.

MLflow's client opens about ten transactions a run, which is most of what tracking costs. Its tables are not
documented, so they are used only where they are those that we know, column by column; elsewhere, and through
a server, runs are written one by one by the documented calls (`write.py`). Both give the same runs.

A run's id is made from its slot and result: the database itself refuses a second one. Its artifacts are there
before it is, so a kill leaves no half of a run.
"""

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.records.record import Record
from pipeline.track.runs.run_writing import RunContext, put_artifacts, run_documents
from pipeline.track.runs.variant_run import VariantRun
from pipeline.track.stores.mlflow_store import MlflowStore, is_server

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput
    from sqlalchemy.orm import Session

AT_ONCE = 200  # runs in one transaction
RUN_NAME = "mlflow.runName"
_METRIC = {"key", "value", "timestamp", "step", "is_nan", "run_uuid"}
KNOWN = {
    "SqlRun": {
        *("run_uuid", "name", "source_type", "source_name", "entry_point_name", "user_id", "status"),
        *("start_time", "end_time", "deleted_time", "source_version", "lifecycle_stage", "artifact_uri"),
        "experiment_id",
    },
    "SqlTag": {"key", "value", "run_uuid"},
    "SqlParam": {"key", "value", "run_uuid"},
    "SqlMetric": _METRIC,
    "SqlLatestMetric": _METRIC,
    "SqlDataset": {
        *("dataset_uuid", "experiment_id", "name", "digest", "dataset_source_type", "dataset_source"),
        *("dataset_schema", "dataset_profile"),
    },
    "SqlInput": {"input_uuid", "source_type", "source_id", "destination_type", "destination_id", "step"},
    "SqlInputTag": {"input_uuid", "name", "value"},
}
"""Tables of MLflow 3.10 to 3.17 that a run lies in."""

Rows = dict[str, list[dict[str, Any]]]


class NewRun(Record, frozen=True, kw_only=True):
    """A run that is not there yet."""

    run: VariantRun
    tags: dict[str, str]
    taken: frozenset[str]
    """Ids of other runs of its slot."""


def can_write(store: MlflowStore) -> bool:
    """Whether there is a database behind it whose tables are known."""
    if is_server(store.uri):
        return False
    try:
        from mlflow.store.tracking.dbmodels import models

        return all(set(getattr(models, name).__table__.columns.keys()) == KNOWN[name] for name in KNOWN)
    except (ImportError, AttributeError):
        return False


def write_runs(store: MlflowStore, runs: Sequence[NewRun], place: RunContext) -> dict[str, str]:
    """Write artifacts, then all runs at once, whole or not at all; slot -> id.

    Raises
    ------
    sqlalchemy.exc.IntegrityError
        Another writer was first with one of them.
    """
    import sqlalchemy
    from mlflow.utils.uri import append_to_uri_path
    from sqlalchemy.orm import Session

    location = store.client.get_experiment(place.experiment).artifact_location
    rows: Rows = {name: [] for name in KNOWN}
    ids = {}
    for new in runs:
        run = new.run
        identity = ids[run.slot] = _identity(new, place)
        artifacts = append_to_uri_path(location, identity, "artifacts")  # type: ignore[no-untyped-call]
        put_artifacts(store, artifacts, run.files, run_documents(run, place))
        rows["SqlRun"].append(_run_row(run, identity, artifacts, place))
        _add_values(rows, new, identity)
    engine = sqlalchemy.create_engine(store.uri, poolclass=sqlalchemy.NullPool)
    with Session(engine) as session, session.begin():
        if place.dataset is not None:
            _add_inputs(session, rows, place.dataset, place.experiment, ids.values())
        _insert(session, rows)
    return ids


def _identity(new: NewRun, place: RunContext) -> str:
    """Of the form of MLflow's own ids: 32 hexadecimal digits."""
    parts = "\0".join((place.experiment, new.run.slot, new.run.result))
    identity = hashlib.sha256(parts.encode()).hexdigest()[:32]
    # Taken by one that somebody set back to "running": it does not count, and is retired.
    return uuid.uuid4().hex if identity in new.taken else identity


def _run_row(run: VariantRun, identity: str, artifacts: str, place: RunContext) -> dict[str, Any]:
    return {
        "run_uuid": identity,
        "name": run.name,
        "source_type": "UNKNOWN",
        "source_name": "",
        "entry_point_name": "",
        "user_id": "unknown",
        "status": "FINISHED",
        "start_time": run.started,
        "end_time": run.ended,
        "deleted_time": None,
        "source_version": "",
        "lifecycle_stage": "active",
        "artifact_uri": artifacts,
        "experiment_id": int(place.experiment),
    }


def _add_values(rows: Rows, new: NewRun, identity: str) -> None:
    run = new.run
    named = {RUN_NAME: run.name, **new.tags}
    rows["SqlTag"] += [{"run_uuid": identity, "key": key, "value": text} for key, text in named.items()]
    rows["SqlParam"] += [
        {"run_uuid": identity, "key": key, "value": text} for key, text in run.params.items()
    ]
    time = {"run_uuid": identity, "timestamp": run.ended, "step": 0, "is_nan": False}
    metrics = [{**time, "key": key, "value": value} for key, value in run.metrics.items()]
    rows["SqlMetric"] += metrics
    rows["SqlLatestMetric"] += metrics


def _add_inputs(
    session: "Session", rows: Rows, given: "DatasetInput", experiment: str, runs: Iterable[str]
) -> None:
    """The dataset, where the experiment has it not yet, and what ties it to each run."""
    from mlflow.store.tracking.dbmodels.models import SqlDataset

    dataset = given.dataset
    wanted = {"experiment_id": int(experiment), "name": dataset.name, "digest": dataset.digest}
    known = session.query(SqlDataset.dataset_uuid).filter_by(**wanted).first()
    identity = known[0] if known else uuid.uuid4().hex
    if known is None:
        described = {
            "dataset_source_type": dataset.source_type,
            "dataset_source": dataset.source,
            "dataset_schema": dataset.schema,
            "dataset_profile": dataset.profile,
        }
        rows["SqlDataset"].append({"dataset_uuid": identity, **wanted, **described})
    for run in runs:
        tie = uuid.uuid4().hex
        ends = {"source_type": "DATASET", "source_id": identity}
        rows["SqlInput"].append({"input_uuid": tie, **ends, "destination_type": "RUN", "destination_id": run})
        rows["SqlInputTag"] += [
            {"input_uuid": tie, "name": tag.key, "value": tag.value} for tag in given.tags or []
        ]


def _insert(session: "Session", rows: Rows) -> None:
    """In the order in which the tables refer to each other."""
    import sqlalchemy
    from mlflow.store.tracking.dbmodels import models

    for name, values in rows.items():
        if values:
            session.execute(sqlalchemy.insert(getattr(models, name)), values)
