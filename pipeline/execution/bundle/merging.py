"""Merge a bundle into the artifact store: decided first, then written; repeating it changes nothing.

Equal results are known by their content: compiling twice gives one artifact, verifying twice one verdict, two
measurements always differ. An entry whose binary stayed on the other machine gets a folder without
`record.json`, so that it is never taken for a compiled variant here: a run that needs it compiles it again.
"""

import collections
import shutil
from pathlib import Path
from typing import Any, Literal

import msgspec

from pipeline.execution.bundle.bundle_file import Bundle
from pipeline.execution.bundle.bundle_validation import Checked
from pipeline.records.errors import BundleError, StoreError
from pipeline.records.record import Record, digest_bytes, to_json
from pipeline.records.results.compiled import Compiled, CompileRecord
from pipeline.store.atomic import new_folder, write_atomic
from pipeline.store.entries import RECORD
from pipeline.store.integrity import seal_folder, unseal

ORIGIN = "origin.json"
"""Beside the record of an entry that a bundle brought: where it was made."""
PARTIAL = "record.partial.json"
"""The record of an entry that came without its binary."""

Action = Literal["new", "known", "replaced", "partial"]


class Merge(Record, frozen=True, kw_only=True):
    """What will be done: name of a file or of an entry's folder -> action."""

    files: dict[str, Action]
    entries: dict[str, Action]

    def counts(self) -> dict[str, int]:
        """Action -> how many files and entries."""
        return dict(collections.Counter([*self.files.values(), *self.entries.values()]))


def bundle_folder(root: Path, identity: str) -> Path:
    """What is kept of a bundle that is in no store entry: manifest, logs, and what it replaced."""
    return root / "bundles" / identity


def decide(bundle: Bundle, checked: Checked, root: Path, *, replace: bool) -> Merge:
    """What becomes of every file; nothing is written.

    Raises
    ------
    BundleError
        Our store has a later result for the same work on an equal machine, and `replace` is not set.
    """
    files: dict[str, Action] = {}
    for name in checked.specs:
        ours = _read(root / name)
        whole = ours is not None and Path(name).stem.rpartition("-")[2] == digest_bytes(ours)
        files[name] = "known" if whole else "new"
    for name in checked.outputs:
        files[name] = _action(bundle, name, _read(root / name), name, replace=replace)
    entries = {
        folder: _entry_action(bundle, folder, names, root, replace=replace)
        for folder, names in checked.entries.items()
    }
    return Merge(files=files, entries=entries)


def write(bundle: Bundle, checked: Checked, merge: Merge, root: Path) -> None:
    """Do it: entries first, so that an output never names one that is not there.

    Raises
    ------
    StoreError
        No space, no permission; begun again, it goes on.
    """
    kept = bundle_folder(root, bundle.manifest.identity)
    for folder, action in merge.entries.items():
        if action != "known":
            set_aside(root / folder, kept / "replaced" / folder if action == "replaced" else None)
            _write_entry(bundle, folder, checked.entries[folder], root, partial=action == "partial")
    for name, action in merge.files.items():
        if action == "replaced":
            write_atomic(kept / "replaced" / name, (root / name).read_bytes())
        if action != "known":
            unseal(root / name)
            write_atomic(root / name, bundle.contents[name])
    for name in checked.logs:
        write_atomic(kept / name, bundle.contents[name])
    write_atomic(kept / "manifest.json", to_json(bundle.manifest))


def is_whole(bundle: Bundle, folder: str, names: tuple[str, ...]) -> bool:
    """Whether an entry came with all that it needs here: a compiled variant is nothing without its files."""
    if f"{folder}/{RECORD}" not in names:
        return False
    if not folder.startswith("store/compile/"):
        return True
    result = msgspec.json.decode(bundle.contents[f"{folder}/{RECORD}"], type=CompileRecord).result
    if not isinstance(result, Compiled):
        return True
    return all(f"{folder}/{name}" in names for name in (result.artifact, *result.files))


def _entry_action(
    bundle: Bundle, folder: str, names: tuple[str, ...], root: Path, *, replace: bool
) -> Action:
    ours = _read(root / folder / RECORD)
    if ours is not None and f"{folder}/{RECORD}" in names:
        return _action(bundle, f"{folder}/{RECORD}", ours, folder, replace=replace)
    if is_whole(bundle, folder, names):
        return "new"
    return "known" if (root / folder / PARTIAL).is_file() else "partial"


def _action(bundle: Bundle, name: str, ours: bytes | None, shown: str, *, replace: bool) -> Action:
    if ours is None:
        return "new"
    stage = name.split("/")[1 if name.startswith("store/") else 0]
    likeness = compare(stage, ours, bundle.contents[name])
    if likeness in ("same", "alike"):
        return "known"
    if likeness == "later" and not replace:
        raise BundleError(
            f"{bundle.path}: the store has a later result of the same work on an equal machine ({shown}): "
            "--replace takes the bundle's, and keeps ours aside"
        )
    return "replaced"


def _write_entry(bundle: Bundle, folder: str, names: tuple[str, ...], root: Path, *, partial: bool) -> None:
    with new_folder(root / folder) as scratch:
        for name in names:
            inside = name.removeprefix(f"{folder}/")
            path = scratch / (PARTIAL if partial and inside == RECORD else inside)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bundle.contents[name])
        (scratch / ORIGIN).write_bytes(to_json(bundle.manifest.origin))
        seal_folder(scratch)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


Likeness = Literal["same", "alike", "earlier", "later"]
"""`alike`: ours is as good. `earlier`, `later`: they differ, and ours was made before or after the other."""

_UNIMPORTANT = ("provenance", "seconds")


def compare(stage: str, ours: bytes, theirs: bytes) -> Likeness:
    """How our file stands to theirs; one of ours that cannot be read is an earlier one."""
    if ours == theirs:
        return "same"
    try:
        mine = msgspec.json.decode(ours)
    except msgspec.DecodeError:
        return "earlier"
    other = msgspec.json.decode(theirs)
    if stage == "mutate" or _essence(stage, mine) == _essence(stage, other):
        return "alike"
    return "later" if _made(mine) > _made(other) else "earlier"


def _essence(stage: str, value: Any) -> object:
    """What counts in an output or a record: of a verdict whether it passed, or how it failed."""
    if stage == "generate":
        return value
    if "records" in value:
        found = [_essence(stage, record) for record in value["records"]]
        return [value["key"], value["round"], sorted(found, key=repr)]
    if stage == "verify":
        return [value["variant"], value["entry"], _ending(value["result"])]
    return {name: part for name, part in value.items() if name not in _UNIMPORTANT}


def _ending(result: Any) -> object:
    return result.get("outcome", result.get("type"))


def _made(value: Any) -> str:
    """Time of the last result in it: ISO 8601 in UTC sorts as text."""
    records = value.get("records", [value])
    return max((record["provenance"]["created"] for record in records if "provenance" in record), default="")


def set_aside(folder: Path, kept: Path | None) -> None:
    """Move a folder away to `kept`; without that it is thrown away: it held nothing whole.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    if not folder.exists():
        return
    try:
        if kept is None or kept.exists():  # an interrupted attempt has it already
            shutil.rmtree(folder)
        else:
            kept.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(kept)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be replaced: {error.strerror or error}") from error
