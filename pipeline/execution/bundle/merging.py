"""Merge a bundle into the artifact store: checked, decided, then written; repeating it changes nothing.

Equal results are known by their content: compiling twice gives one artifact, verifying twice one verdict, two
measurements always differ. An entry whose binary stayed on the other machine gets a folder without
`record.json`, so that it is never taken for a compiled variant here: a run that needs it compiles it again.
"""

import collections
import re
import shutil
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from pipeline.execution.bundle.bundle_file import PLAN, SPEC, Bundle, check_name
from pipeline.records.errors import BundleError, StoreError
from pipeline.records.outcome import Failure
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.planning.specs import (
    AggregateSpec,
)
from pipeline.records.record import Record, digest_bytes, digest_parts, to_json
from pipeline.records.results.compiled import Compiled, CompileRecord
from pipeline.records.results.mutated import MutateOutput
from pipeline.records.results.profiled import ProfileRecord
from pipeline.records.results.verified import VerifyRecord
from pipeline.records.search.written_source import KeptSource, SourceRecord
from pipeline.stages.table import STAGES, RoundOutput, rounds
from pipeline.store.atomic import new_folder, write_atomic
from pipeline.store.entries import RECORD
from pipeline.store.integrity import seal_folder, unseal
from pipeline.store.stored_sources import FILES, STAGE

R = TypeVar("R", bound=Record)

Place = Literal["plan", "output", "entry", "log", "own"]

_ROUNDS = {stage.name: stage.output for stage in rounds() if stage.output is not None}
_ENTRIES = {stage.name: stage.entry for stage in rounds() if stage.entry is not None}
_SPEC = re.compile(r"plan/(\w+)/([^/]+)\.json")
_OUTPUT = re.compile(r"(\w+)/([^/]+)/round(\d+)\.json")
_MUTATED = re.compile(r"mutate/([^/]+)\.json")
_HEX = re.compile(r"[0-9a-f]+")
_ENTRY = re.compile(r"store/(\w+)/([0-9a-f]{2})/([0-9a-f]+)/(.+)")


class Checked(Record, frozen=True, kw_only=True):
    """The names of a bundle's files, by where they go."""

    spec: AggregateSpec
    plan: Plan
    specs: tuple[str, ...]
    outputs: tuple[str, ...]
    entries: dict[str, tuple[str, ...]]
    """Folder of a store entry -> its files."""
    logs: tuple[str, ...]


def check(bundle: Bundle) -> Checked:
    """Decode every record, and compare it with the place that its name gives it.

    Raises
    ------
    BundleError
        A file is not what its name says, or what a finished task needs is missing.
    """
    names: dict[Place, list[str]] = {"plan": [], "output": [], "entry": [], "log": [], "own": []}
    for name, content in bundle.contents.items():
        names[_place(bundle, name, content)].append(name)
    entries: dict[str, list[str]] = {}
    for name in names["entry"]:
        entries.setdefault("/".join(name.split("/")[:4]), []).append(name)
    spec = _decoded(bundle, SPEC, AggregateSpec)
    _check_whole(bundle, spec)
    return Checked(
        spec=spec,
        plan=_decoded(bundle, PLAN, Plan),
        specs=tuple(names["plan"]),
        outputs=tuple(names["output"]),
        entries={folder: tuple(files) for folder, files in entries.items()},
        logs=tuple(names["log"]),
    )


def _place(bundle: Bundle, name: str, content: bytes) -> Place:
    if name in (PLAN, SPEC):
        return "own"
    if name.startswith("logs/"):
        return "log"
    if match := _SPEC.fullmatch(name):
        _expect(bundle, name, _has_spec(match[1]) and match[2].rpartition("-")[2] == digest_bytes(content))
        _decoded(bundle, name, STAGES[match[1]].spec)
        return "plan"
    if match := _MUTATED.fullmatch(name):
        _expect(bundle, name, _decoded(bundle, name, MutateOutput).key == match[1])
        return "output"
    if match := _OUTPUT.fullmatch(name):
        _expect(bundle, name, match[1] in _ROUNDS)
        output = _decoded(bundle, name, _ROUNDS[match[1]])
        assert isinstance(output, RoundOutput)
        _expect(bundle, name, (output.key, output.round) == (match[2], int(match[3])))
        for record in output.records:
            if isinstance(record, SourceRecord):
                _expect(bundle, name, _HEX.fullmatch(record.entry) is not None)
            else:
                _check_names(bundle, name, record)
        return "output"
    match = _ENTRY.fullmatch(name)
    known = (*_ENTRIES, STAGE)
    _expect(bundle, name, match is not None and match[1] in known and match[3].startswith(match[2]))
    assert match is not None
    if match[4] == RECORD and match[1] == STAGE:
        _check_source(bundle, name, _decoded(bundle, name, KeptSource), match[3])
    elif match[4] == RECORD:
        kept = _decoded(bundle, name, _ENTRIES[match[1]])
        assert isinstance(kept, CompileRecord | VerifyRecord | ProfileRecord)
        _expect(bundle, name, kept.entry == match[3])
        _check_names(bundle, name, kept)
    return "entry"


def _has_spec(stage: str) -> bool:
    """Whether bundles hold specs of a stage: of those that ran for a task or an implementation."""
    return stage in _ROUNDS or stage == "mutate"


def _check_source(bundle: Bundle, name: str, kept: KeptSource, entry: str) -> None:
    """An entry is named after its files, so all that it names must be there and be what it says."""
    _expect(bundle, name, digest_parts(kept.files) == entry and kept.main in kept.files)
    folder = name.removesuffix(RECORD)
    for file, known in kept.files.items():
        check_name(bundle.path, file)
        content = bundle.contents.get(f"{folder}{FILES}/{file}")
        _expect(bundle, name, content is not None and digest_bytes(content) == known)


def _check_names(bundle: Bundle, name: str, record: CompileRecord | VerifyRecord | ProfileRecord) -> None:
    """Files that a record names are read from its folder, so they must be there."""
    _expect(bundle, name, _HEX.fullmatch(record.entry) is not None)
    files: tuple[str, ...] = ()
    if isinstance(record.result, Compiled):
        files = (record.result.artifact, *record.result.files)
    elif isinstance(record.result, Failure) and record.result.log is not None:
        files = (record.result.log,)
    for file in files:
        check_name(bundle.path, file)


def _check_whole(bundle: Bundle, spec: AggregateSpec) -> None:
    """Everything that aggregate will read, under names that make no paths of their own."""
    check_name(bundle.path, spec.experiment)
    _expect(bundle, SPEC, "/" not in spec.experiment)
    for mutation in spec.mutations:
        _expect(bundle, SPEC, f"mutate/{mutation.key}.json" in bundle.contents)
    for task in spec.tasks:
        for stage in _ROUNDS:
            key = getattr(task, stage)
            needed = [f"plan/{stage}/{key}.json"]
            needed += [f"{stage}/{key}/round{number}.json" for number in range(task.rounds)]
            for name in needed:
                if name not in bundle.contents:
                    raise BundleError(f"{bundle.path}: refused: {name} of a finished task is missing")


def _expect(bundle: Bundle, name: str, holds: bool) -> None:
    if not holds:
        raise BundleError(f"{bundle.path}: refused: {name} does not hold what its name says")


def _decoded(bundle: Bundle, name: str, kind: type[R]) -> R:
    try:
        return msgspec.json.decode(bundle.contents[name], type=kind)
    except KeyError:
        raise BundleError(f"{bundle.path}: refused: {name} is missing") from None
    except msgspec.DecodeError as error:
        raise BundleError(
            f"{bundle.path}: refused: {name} cannot be read as {kind.__name__} of this version: {error}"
        ) from None


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
