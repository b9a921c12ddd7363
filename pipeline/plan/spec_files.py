"""The plan's files: a spec is written where its key says, and only if it is not there already."""

from collections.abc import Iterable
from pathlib import Path

from pipeline.records.layout import spec_path
from pipeline.records.record import Record, digest_bytes, to_json
from pipeline.store.atomic import FolderWriter
from pipeline.store.outputs import is_whole


class SpecFile(Record, frozen=True, kw_only=True):
    """A spec as it lies on disk: encoded once, for its key and for its file."""

    key: str
    content: bytes


def spec_file(name: str, spec: Record) -> SpecFile:
    """The spec's file; its key is that of `pipeline.records.planning.specs.key_of`."""
    content = to_json(spec)
    return SpecFile(key=f"{name}-{digest_bytes(content)}", content=content)


class SpecFiles:
    """Writes the specs of a plan; an equal file is not touched: its time stamp would run things again."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._folders: dict[str, FolderWriter] = {}

    def put(self, stage: str, file: SpecFile) -> None:
        """Write one spec.

        Raises
        ------
        StoreError
            No space, no permission.
        """
        path = spec_path(self._store, stage, file.key)
        if stage not in self._folders:
            self._folders[stage] = FolderWriter(path.parent)
        self._folders[stage].put(path.name, file.content)


def write_spec(store: Path, stage: str, key: str, spec: Record) -> None:
    """Write one spec alone."""
    SpecFiles(store).put(stage, SpecFile(key=key, content=to_json(spec)))


def are_whole(store: Path, keys: Iterable[tuple[str, str]]) -> bool:
    """Whether the specs with these stages and keys are there, and what was written."""
    return all(is_whole(spec_path(store, stage, key)) for stage, key in keys)
