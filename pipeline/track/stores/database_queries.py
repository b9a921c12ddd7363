"""Asks a database once for what it holds, where MLflow's client would ask run by run: names in, findings out.

Its tables are not documented, so they are read only where they are those that we know (`bulk_insert`);
elsewhere, and through a server, the answer is None, and whoever asked goes the documented way.
"""

import collections
from collections.abc import Collection, Iterable
from typing import Any

from pipeline.records.record import Record
from pipeline.track.runs.idempotency import RESULT, SLOT, SUPERSEDED, TASK_NAME, WINNER, Known, KnownRun
from pipeline.track.stores import bulk_insert
from pipeline.track.stores.mlflow_store import MlflowStore

TOGETHER = 500
"""Names in one question: databases limit its length."""
KEYS = (SLOT, RESULT, SUPERSEDED, WINNER, "task")
MODELS = {
    "SqlRegisteredModelAlias": {"name", "alias", "version"},
    "SqlModelVersion": {"name", "version", "run_id"},
}


class AliasedVersion(Record, frozen=True, kw_only=True):
    """What an alias of a model stands for."""

    version: str
    run: str


def known_runs(store: MlflowStore, experiment: str, tasks: Collection[str]) -> dict[str, Known] | None:
    """Task -> what an experiment holds of it, by slot, the youngest first."""
    if not bulk_insert.can_write(store):
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
    if not _has_models(store):
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


def _has_models(store: MlflowStore) -> bool:
    if not bulk_insert.can_write(store):
        return False
    try:
        from mlflow.store.model_registry.dbmodels import models

        return all(
            names <= set(getattr(models, table).__table__.columns.keys()) for table, names in MODELS.items()
        )
    except (ImportError, AttributeError):
        return False
