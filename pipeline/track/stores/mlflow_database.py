"""MLflow's own tables: many runs written in one transaction, and what a database holds read in one query.

MLflow's client opens about ten transactions a run, and asks run by run: 1,000 runs into SQLite take 39 s of
processor time through it and 4 s here. The tables are not documented, so this module alone uses them, and
only if `is_supported`: this was tested with the version of MLflow, and its tables have the columns that we
know. Otherwise, and through a server, the client is used (`run_writing.py`, `idempotency.py`,
`registered_models.py`). Both give the same runs.

A run's id is made from its slot and result: the database itself refuses a second one. Its artifacts are there
before it is, so a kill leaves no half of a run.
"""

import collections
import hashlib
import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.records.record import Record
from pipeline.track.runs.run_writing import (
    RESULT,
    SLOT,
    SUPERSEDED,
    TASK_NAME,
    WINNER,
    Known,
    KnownRun,
    RunContext,
    local_folder,
    put_local_artifacts,
    run_documents,
)
from pipeline.track.runs.variant_run import VariantRun
from pipeline.track.stores.mlflow_store import MlflowStore, is_server

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput
    from sqlalchemy.orm import Session

TESTED = (3, 10), (3, 17)
"""The first and the last minor version of MLflow that this was tested with."""
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
"""Tables that a run is stored in, with all their columns."""
MODELS = {
    "SqlRegisteredModelAlias": {"name", "alias", "version"},
    "SqlModelVersion": {"name", "version", "run_id"},
}
"""Tables of registered models, with the columns that are read."""
TOGETHER = 500
"""Names in one query: databases limit its length."""
KEYS = (SLOT, RESULT, SUPERSEDED, WINNER, "task")

Rows = dict[str, list[dict[str, Any]]]


class AliasedVersion(Record, frozen=True, kw_only=True):
    """What an alias of a model stands for."""

    version: str
    run: str


class NewRun(Record, frozen=True, kw_only=True):
    """A run that is not there yet."""

    run: VariantRun
    tags: dict[str, str]
    taken: frozenset[str]
    """Ids of other runs of its slot."""


def is_supported(store: MlflowStore) -> bool:
    """Whether the store is a database whose tables are known, here and not behind a server."""
    return not is_server(store.uri) and _is_tested_version() and _has_known_tables()


def _is_tested_version() -> bool:
    import mlflow

    parts = mlflow.__version__.split(".")[:2]
    version = tuple(int(part) for part in parts if part.isdecimal())
    return TESTED[0] <= version <= TESTED[1]


def _has_known_tables() -> bool:
    try:
        from mlflow.store.model_registry.dbmodels import models as registry
        from mlflow.store.tracking.dbmodels import models

        return all(_columns(models, name) == columns for name, columns in KNOWN.items()) and all(
            columns <= _columns(registry, name) for name, columns in MODELS.items()
        )
    except (ImportError, AttributeError):
        return False


def _columns(models: Any, name: str) -> set[str]:
    return set(getattr(models, name).__table__.columns.keys())


def write_runs(store: MlflowStore, runs: Sequence[NewRun], place: RunContext) -> dict[str, str]:
    """Write artifacts, then all runs at once, whole or not at all; slot -> id.

    Raises
    ------
    sqlalchemy.exc.IntegrityError
        Another writer was first with one of them.
    """
    import sqlalchemy
    from sqlalchemy.orm import Session

    location = store.client.get_experiment(place.experiment).artifact_location
    rows: Rows = {name: [] for name in KNOWN}
    ids = {}
    for new in runs:
        run = new.run
        identity = ids[run.slot] = _identity(new, place)
        artifacts = f"{location.rstrip('/')}/{identity}/artifacts"
        folder = local_folder(artifacts)
        assert folder is not None, "callers check this first"
        put_local_artifacts(folder, run.files, run_documents(run, place))
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


def known_runs(store: MlflowStore, experiment: str, tasks: Collection[str]) -> dict[str, Known] | None:
    """Task -> what an experiment holds of it, by slot, the youngest first."""
    if not is_supported(store):
        return None
    import sqlalchemy
    from mlflow.store.tracking.dbmodels.models import SqlRun, SqlTag
    from sqlalchemy.orm import aliased

    named = aliased(SqlTag)
    query = (
        sqlalchemy.select(
            SqlRun.run_uuid, SqlRun.status, SqlRun.lifecycle_stage, named.value, SqlTag.key, SqlTag.value
        )
        .join(named, named.run_uuid == SqlRun.run_uuid)
        .join(SqlTag, SqlTag.run_uuid == SqlRun.run_uuid)
        .where(SqlRun.experiment_id == int(experiment), named.key == TASK_NAME, SqlTag.key.in_(KEYS))
        .order_by(SqlRun.start_time.desc(), SqlRun.run_uuid)
    )
    states: dict[str, tuple[str, str, str]] = {}
    tags: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for rows in _ask(store, query, named.value, tasks):
        for run, status, stage, task, key, value in rows:
            states[run] = (status, stage, task)
            tags[run][key] = value
    known: dict[str, Known] = {task: {} for task in tasks}
    for run, (status, stage, task) in states.items():
        if SLOT in tags[run]:
            entry = KnownRun(
                id=run,
                result=tags[run].get(RESULT, ""),
                active=stage == "active",
                finished=status == "FINISHED",
                tags=tags[run],
            )
            known[task].setdefault(tags[run][SLOT], []).append(entry)
    return known


def known_champions(store: MlflowStore, models: Collection[str]) -> dict[tuple[str, str], AliasedVersion]:
    """Model and alias -> what it stands for; without those that are not known for certain."""
    if not is_supported(store):
        return {}
    import sqlalchemy
    from mlflow.store.model_registry.dbmodels.models import SqlModelVersion, SqlRegisteredModelAlias

    alias, version = SqlRegisteredModelAlias, SqlModelVersion
    query = sqlalchemy.select(alias.name, alias.alias, alias.version, version.run_id).join(
        version, (version.name == alias.name) & (version.version == alias.version)
    )
    found: dict[tuple[str, str], list[AliasedVersion]] = collections.defaultdict(list)
    for rows in _ask(store, query, alias.name, models):
        for name, label, number, run in rows:
            found[name, label].append(AliasedVersion(version=str(number), run=str(run)))
    # Several: the same name in several of MLflow's workspaces.
    return {key: several[0] for key, several in found.items() if len(several) == 1}


def _ask(store: MlflowStore, query: Any, column: Any, names: Collection[str]) -> Iterable[Any]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(store.uri, poolclass=sqlalchemy.NullPool)
    ordered = list(dict.fromkeys(names))
    with engine.connect() as connection:
        for start in range(0, len(ordered), TOGETHER):
            yield connection.execute(query.where(column.in_(ordered[start : start + TOGETHER])))
