"""What a stage writes for one round of one task: a record in, its file out, and a shared copy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pipeline.records.layout import STAGES, output_path
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import digest_bytes, to_json
from pipeline.store.integrity import write_sealed
from pipeline.store.shared_store import SharedStore, shared_store


class Output(Protocol):
    """A stage's output."""

    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def round(self) -> int: ...  # noqa: D102


def put_output(path: Path, stage: str, output: Output, *, spec: Path) -> None:
    """Write the output of a stage that read `spec`.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    write_sealed(path, to_json(output))
    shared = shared_store()
    if shared is not None and is_whole(spec):
        shared.put_output(path, stage, output.key, output.round)


def bring_outputs(shared: SharedStore, tasks: Sequence[TaskRow], root: Path) -> int:
    """Copy what a shared store has of these tasks; how many stage outputs that were.

    In the order of the flow, and only behind what is there: a file that is older than what it was made from
    would be made again.
    """
    brought = 0
    for number in range(max((task.rounds for task in tasks), default=0)):
        tasks = [task for task in tasks if number < task.rounds]
        for stage in STAGES:
            keys = [getattr(task, stage) for task in tasks]
            brought += shared.bring_outputs(root, stage, [(key, number) for key in keys])
            there = {key for key in keys if output_path(root, stage, key, number).is_file()}
            tasks = [task for task in tasks if getattr(task, stage) in there]
    return brought


def is_whole(path: Path) -> bool:
    """Whether a file is there and holds what its name says: a key ends with the digest of its spec."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return path.stem.rpartition("-")[2] == digest_bytes(content)
