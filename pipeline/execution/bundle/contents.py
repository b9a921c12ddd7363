"""What a bundle holds: a plan that ran in, the files with their parts in the bundle out.

Records, logs and specs travel always; binaries and what compilers wrote on the way only when asked for, and
then as far as the size allows. Whatever stays is listed with its digest.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pipeline.execution.bundle.manifest import PLAN, SPEC, BundledFile, LeftOut, sha256
from pipeline.execution.chain.stage_commands import StageCommands
from pipeline.records.layout import entry_path
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import Record, to_json
from pipeline.stages.table import STAGES, read_round, rounds
from pipeline.store.entries import RECORD
from pipeline.store.integrity import SEAL
from pipeline.store.privacy import private_paths, without_host, without_paths

Part = Literal["spec", "record", "log", "raw", "source", "binary"]
"""`raw`: what verify and profile keep beside their records, such as every round's figures."""

LOGS = frozenset({".log", ".txt"})
SOURCES = frozenset({".py", ".cpp", ".cu", ".c", ".hpp", ".h"})
LOG_BYTES = 64 << 10  # a longer log loses its middle
LOG_HEAD = 16 << 10


class BundleItem(Record, frozen=True, kw_only=True):
    """A file that may go into the bundle."""

    name: str
    part: Part
    content: bytes


class BundleSelection(Record, frozen=True, kw_only=True):
    """What goes, and what stays."""

    contents: dict[str, bytes]
    files: tuple[BundledFile, ...]
    left_out: tuple[LeftOut, ...]


def items_of(plan: Plan, spec: AggregateSpec, root: Path) -> tuple[BundleItem, ...]:
    """Every file that the plan's jobs left, without the paths and the name of this machine."""
    found = dict(_files(plan, root))
    paths = private_paths(Path.cwd())
    items = [
        BundleItem(name=name, part=part, content=_clean((root / name).read_bytes(), part, paths))
        for name, part in found.items()
        if (root / name).is_file()
    ]
    items.append(BundleItem(name=PLAN, part="spec", content=to_json(plan)))
    items.append(BundleItem(name=SPEC, part="spec", content=to_json(spec)))
    return tuple(sorted(items, key=lambda item: item.name))


def choose(items: tuple[BundleItem, ...], left_out: dict[Part, str]) -> BundleSelection:
    """All items but those of the parts that stay, each for its reason; long logs are cut."""
    contents: dict[str, bytes] = {}
    files: list[BundledFile] = []
    stayed: list[LeftOut] = []
    for item in items:
        size = len(item.content)
        if item.part in left_out:
            reason = left_out[item.part]
            stayed.append(LeftOut(name=item.name, sha256=sha256(item.content), size=size, reason=reason))
            continue
        content = cut(item.content) if item.part == "log" else item.content
        contents[item.name] = content
        files.append(
            BundledFile(
                name=item.name,
                sha256=sha256(content),
                size=len(content),
                cut_from=size if content is not item.content else None,
            )
        )
    return BundleSelection(contents=contents, files=tuple(files), left_out=tuple(stayed))


def cut(log: bytes) -> bytes:
    """A log with its middle cut out and a note in its place; a short one as it is."""
    if len(log) <= LOG_BYTES:
        return log
    tail = LOG_BYTES - LOG_HEAD
    note = f"\n[… {len(log) - LOG_BYTES} bytes cut out by the bundle …]\n".encode()
    return log[:LOG_HEAD] + note + log[-tail:]


def part_of(name: str) -> Part:
    """Which part a file of a store entry is: `store/<stage>/…`."""
    path = Path(name)
    if path.name == RECORD:
        return "record"
    if path.suffix in LOGS:
        return "log"
    if name.startswith("store/generate/"):
        return "source"
    if not name.startswith("store/compile/"):
        return "raw"
    return "source" if path.suffix in SOURCES else "binary"


def _files(plan: Plan, root: Path) -> Iterator[tuple[str, Part]]:
    """Names below the artifacts' root; some may not be there."""
    stages = StageCommands(root, cores=1)
    for task in plan.tasks:
        for stage in rounds():
            yield _name(stage.spec_path(root, getattr(task.row, stage.name)), root), "spec"
        for command in stages.of_task(task):
            output = Path(str(command.output))
            yield _name(output, root), "record"
            yield _name(Path(command.log), root), "log"
            yield from _entries(output, command.stage, root)
    for mutation in plan.mutations:
        if mutation.reported:
            mutate, key = STAGES["mutate"], mutation.key
            yield _name(mutate.spec_path(root, key), root), "spec"
            yield _name(mutate.output_path(root, key), root), "record"
            yield _name(mutate.log_path(root, key), root), "log"


def _entries(output: Path, stage: str, root: Path) -> Iterator[tuple[str, Part]]:
    if not output.is_file():
        return
    for record in read_round(stage, output).records:
        folder = entry_path(root, stage, record.entry)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != SEAL:  # what comes home is sealed anew
                yield _name(path, root), part_of(_name(path, root))


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _clean(content: bytes, part: Part, paths: dict[str, str]) -> bytes:
    """Specs and sources are named by their digests and stay as they are; so do binaries that are no text."""
    if part == "log":
        return without_host(without_paths(content, paths))
    is_text = part in ("record", "raw") or (part == "binary" and b"\0" not in content)
    return without_paths(content, paths) if is_text else content
