"""Writes one MLflow run with as few calls as there can be: Run and what its task shares in, its id out."""

import shutil
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.records.errors import StoreError
from pipeline.records.record import Record, digest, to_json
from pipeline.store.integrity import SEAL, damage, discard
from pipeline.store.temporary import scratch_folder
from pipeline.track.runs.variant_run import TrackedTask, VariantRun
from pipeline.track.stores.mlflow_store import MlflowStore

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, RunInfo


SLOT = "kernelmill.slot"
RESULT = "kernelmill.result"
TASK_NAME = "task_name"
SUPERSEDED = "superseded_by"
WINNER = "winner"


class KnownRun(Record, frozen=True, kw_only=True):
    """A run that MLflow holds."""

    id: str
    result: str
    active: bool
    finished: bool
    """False: what a killed ingestion left."""
    tags: dict[str, str]


Known = dict[str, list[KnownRun]]
"""Slot -> its runs."""


class RunContext(Record, frozen=True, kw_only=True):
    """Where the runs of one task go, and what they share."""

    experiment: str
    """MLflow's id of it."""
    task_name: str
    """Names of the task in one word: the search for what is known goes by it."""
    tags: dict[str, str]
    """Brought up to date on runs that were logged before, too."""
    sweep: str | None
    """Id of the sweep's run: a new run is tagged with the sweep that measured it. None without a sweep."""
    dataset: "DatasetInput | None"
    """What the kernel was measured on; None where nothing was measured."""
    task_document: bytes | None
    """task.json: the row and the specs of all stages; None without a task."""


def workload_dataset(task: TrackedTask) -> "DatasetInput":
    """The workload as a dataset input: what the kernel was measured on."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    row = task.row
    source = {name: getattr(row, name) for name in ("workload", "kernel", "dtype", "dimensions")}
    text = to_json(source).decode()
    dataset = Dataset(
        name=row.workload, digest=digest(source)[:8], source_type="kernelmill", source=text, profile=text
    )
    return DatasetInput(dataset=dataset, tags=[InputTag("mlflow.data.context", "workload")])


def write_run(store: MlflowStore, run: VariantRun, tags: Mapping[str, str], place: RunContext) -> str:
    """Create, fill and finish a run; only a finished one counts, so a kill leaves nothing half."""
    from mlflow.entities import Metric, Param

    client = store.client
    made = client.create_run(place.experiment, start_time=run.started, tags=dict(tags), run_name=run.name)
    identity: str = made.info.run_id
    client.log_batch(
        identity,
        metrics=[Metric(name, value, run.ended, 0) for name, value in run.metrics.items()],
        params=[Param(name, value) for name, value in run.params.items()],
    )
    if place.dataset is not None:
        _log_dataset(store, identity, place.dataset)
    put_artifacts(store, made.info, run.files, run_documents(run, place))
    client.set_terminated(identity, end_time=run.ended)
    return identity


def run_documents(run: VariantRun, place: RunContext) -> dict[str, bytes]:
    """Files other than the binary and the sources."""
    task = {} if place.task_document is None else {"task.json": place.task_document}
    return {"result.json": to_json(run.record), **task, **run.documents}


def _log_dataset(store: MlflowStore, run: str, dataset: "DatasetInput") -> None:
    from mlflow.exceptions import MlflowException

    try:
        store.client.log_inputs(run, [dataset])
    except MlflowException:
        # Two that bring a new dataset at the same time: MLflow refuses the second, who then finds it there.
        store.client.log_inputs(run, [dataset])


def put_artifacts(
    store: MlflowStore, run: "RunInfo", files: tuple[tuple[Path, str], ...], documents: Mapping[str, bytes]
) -> None:
    """Copy files that are there, and write documents, among the artifacts of a run.

    Raises
    ------
    StoreError
        A file in a sealed folder is not what was written there.
    """
    here = local_folder(run.artifact_uri)
    if here is not None:
        put_local_artifacts(here, files, documents)
        return
    with scratch_folder() as scratch:
        put_local_artifacts(scratch, files, documents)
        # All in one call: for each, MLflow's client asks for the run again.
        store.client.log_artifacts(run.run_id, str(scratch))


def local_folder(artifact_uri: str) -> Path | None:
    """The folder of artifacts on this machine; None if the address is elsewhere."""
    parts = urllib.parse.urlsplit(artifact_uri)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        return None
    return Path(urllib.request.url2pathname(parts.path)) if parts.scheme else Path(artifact_uri)


def put_local_artifacts(
    target: Path, files: tuple[tuple[Path, str], ...], documents: Mapping[str, bytes]
) -> None:
    """The same, into a folder, which is made.

    Raises
    ------
    StoreError
        A file in a sealed folder is not what was written there.
    """
    require_whole(files)
    target.mkdir(parents=True, exist_ok=True)
    for name, content in documents.items():
        (target / name).write_bytes(content)
    for path, folder in files:
        if path.is_file():
            (target / folder).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / folder / path.name)


def require_whole(files: tuple[tuple[Path, str], ...]) -> None:
    """See that what lies in sealed folders is what was written there.

    Raises
    ------
    StoreError
        It is not: the folder is gone, so that the next run makes it again.
    """
    for sealed in dict.fromkeys(path.parent for path, _ in files if (path.parent / SEAL).is_file()):
        if found := damage(sealed):
            discard(sealed)
            raise StoreError(f"{sealed}: damaged ({found}) and removed: run again, and it is made again")


def tag_run(store: MlflowStore, run: str, tags: Mapping[str, str]) -> None:
    """Set several tags in one transaction."""
    from mlflow.entities import RunTag

    store.client.log_batch(run, tags=[RunTag(key, value) for key, value in tags.items()])
