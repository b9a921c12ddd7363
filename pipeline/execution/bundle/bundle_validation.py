"""Does a bundle hold what its names say? A bundle in; its files by where they go out, or one line why not."""

import re
from typing import Literal, TypeVar

import msgspec

from pipeline.execution.bundle.bundle_file import Bundle, check_name
from pipeline.execution.bundle.manifest import PLAN, SPEC
from pipeline.records.errors import BundleError
from pipeline.records.outcome import Failure
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.planning.specs import (
    AggregateSpec,
)
from pipeline.records.record import Record, digest_bytes, digest_parts
from pipeline.records.results.compiled import Compiled, CompileRecord
from pipeline.records.results.mutated import MutateOutput
from pipeline.records.results.profiled import ProfileRecord
from pipeline.records.results.verified import VerifyRecord
from pipeline.records.search.written_source import KeptSource, SourceRecord
from pipeline.stages.table import STAGES, RoundOutput, rounds
from pipeline.store.entries import RECORD
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
    """Files that a record names are read beside it, so they must lie there."""
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
