"""The plan's files: a spec is written where its key says, and only if it is not there already."""

from collections.abc import Iterable
from pathlib import Path

from pipeline.records.record import Record, to_json
from pipeline.store.atomic import write_atomic
from pipeline.store.layout import spec_path
from pipeline.store.outputs import is_whole


def write_spec(store: Path, stage: str, key: str, spec: Record) -> None:
    """Write one spec; an equal file is not touched, because its time stamp would run things again."""
    path = spec_path(store, stage, key)
    content = to_json(spec)
    try:
        there = path.read_bytes() == content
    except OSError:
        there = False
    if not there:
        write_atomic(path, content)


def are_whole(store: Path, keys: Iterable[tuple[str, str]]) -> bool:
    """The same for (stage, key) of a whole plan."""
    return all(is_whole(spec_path(store, stage, key)) for stage, key in keys)
