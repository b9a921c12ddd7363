"""Write the bundle of a plan that ran, within a size limit, with an anonymous description of the machine."""

import datetime
import importlib.metadata
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pipeline.backends.devices.cuda.nvml import Nvml
from pipeline.backends.devices.device import NotAvailable
from pipeline.backends.devices.device_registry import HOST
from pipeline.backends.registry import source_suffixes
from pipeline.execution.bundle.bundle_file import (
    PLAN,
    SPEC,
    BundledFile,
    BundleManifest,
    LeftOut,
    packed,
    sha256,
    write_bundle,
)
from pipeline.execution.bundle.offline_run import OfflineResult
from pipeline.execution.stage_commands import StageCommands
from pipeline.plan.identity.tool_versions import all_library_versions
from pipeline.plan.local_machine import Machine, read_machine
from pipeline.records.environment import untranslated
from pipeline.records.errors import BundleError
from pipeline.records.layout import entry_path
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import Record, to_json
from pipeline.stages.table import STAGES, read_round, rounds
from pipeline.store.current_provenance import revision
from pipeline.store.entries import RECORD
from pipeline.store.integrity import SEAL
from pipeline.store.privacy import private_paths, without_host, without_paths

Part = Literal["spec", "record", "log", "raw", "source", "binary"]
"""`raw`: what verify and profile keep next to their records, such as every round's figures."""

LOGS = frozenset({".log", ".txt"})
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
    return "source" if path.suffix in source_suffixes() else "binary"


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
        yield from _unfinished(task, stages, root)
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


def _unfinished(task: PlannedTask, stages: StageCommands, root: Path) -> Iterator[tuple[str, Part]]:
    """What a task has that did not finish: all entries of the stages that it lacks, of whichever task."""
    for command in stages.of_task(task):
        if command.done or STAGES[command.stage].entry is None:
            continue
        for record in (root / "store" / command.stage).glob(f"*/*/{RECORD}"):
            for path in sorted(record.parent.rglob("*")):
                if path.is_file() and path.name != SEAL:
                    yield _name(path, root), part_of(_name(path, root))


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _clean(content: bytes, part: Part, paths: dict[str, str]) -> bytes:
    """Specs and sources are named by their digests and stay as they are; so do binaries that are no text."""
    if part == "log":
        return without_host(without_paths(content, paths))
    is_text = part in ("record", "raw") or (part == "binary" and b"\0" not in content)
    return without_paths(content, paths) if is_text else content


NOT_ASKED = "binaries stay unless --with-binaries"


class BundleRequest(Record, frozen=True, kw_only=True):
    """What the user wants of the bundle."""

    overrides: tuple[str, ...]
    binaries: bool
    limit: int
    """Bytes of the file."""


class Written(Record, frozen=True, kw_only=True):
    """A bundle that was written."""

    size: int
    manifest: BundleManifest
    note: str | None
    """What had to stay because of the size."""


def write(path: Path, request: BundleRequest, plan: Plan, ran: OfflineResult, *, root: Path) -> Written:
    """Write the bundle; binaries, then raw figures stay where it would be too large.

    Raises
    ------
    BundleError
        The records alone are too large.
    StoreError
        No space, no permission.
    """
    items = items_of(plan, ran.spec, root)
    size = f"the bundle would be larger than {request.limit / 2**20:g} MiB"
    asked: dict[Part, str] = {} if request.binaries else {"binary": NOT_ASKED}
    without_raw: dict[Part, str] = {"raw": size, "binary": asked.get("binary", size)}
    without_binaries: dict[Part, str] = {"binary": asked.get("binary", size)}
    steps = (asked, without_binaries, without_raw)
    for stays in steps:
        manifest, content = _made(request, plan, ran, items, stays)
        if len(content) <= request.limit:
            write_bundle(path, content)
            kept = sorted(part for part, reason in stays.items() if reason == size)
            note = f"{size}: without {' and '.join(kept)}" if kept else None
            return Written(size=len(content), manifest=manifest, note=note)
    raise BundleError(
        f"{path}: the records alone take {len(content) / 2**20:.1f} MiB, allowed are "
        f"{request.limit / 2**20:g}: raise --limit, or run a part of the experiment"
    )


def _made(
    request: BundleRequest,
    plan: Plan,
    ran: OfflineResult,
    items: tuple[BundleItem, ...],
    stays: dict[Part, str],
) -> tuple[BundleManifest, bytes]:
    chosen = choose(items, stays)
    machine = read_machine()
    measured = {task.row.kind for task in plan.tasks if task.row.device_present}
    manifest = BundleManifest(
        experiment=plan.experiment,
        description=ran.spec.description,
        overrides=request.overrides,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        git=revision(Path.cwd()),
        device=device_of(machine, set(measured)),
        environment=environment_of(machine),
        tasks=ran.tasks,
        jobs=ran.jobs,
        files=chosen.files,
        left_out=chosen.left_out,
    )
    return manifest, packed(manifest, chosen.contents)


LIBRARIES = ("triton", "cuda-core", "pandas")
"""Beside those that stages compute with."""
ABSENT = "absent"
_TOOLS = {"g++": ("g++", "--version"), "nvcc": ("nvcc", "--version")}
_SECONDS = 20


def device_of(machine: Machine, kinds: set[str]) -> str:
    """Product names of what measures tasks of these kinds; the processor where nothing is measured."""
    names = [found.name for found in machine.devices if found.kind in kinds]
    if not names or HOST in kinds:
        names.append(machine.cpu.facts["model"])
    return " and ".join(names)


def environment_of(machine: Machine) -> dict[str, str]:
    """Python, libraries, tools, driver, processor and system; what is not there is not in it."""
    facts, gpu = machine.cpu.facts, machine.accelerator
    found = {
        "gpu": gpu.name if gpu else ABSENT,
        "architecture": gpu.architecture if gpu else machine.cpu.architecture,
        "driver": driver_version() or ABSENT,
        "cpu": facts["model"],
        "cores": facts["cores"],
        "threads": facts["threads"],
        "memory": f"{int(facts['memory_bytes']) / 2**30:.0f} GiB",
        "system": facts["system"],
        "python": platform.python_version(),
        **all_library_versions(),
        **{name: _version(name) for name in LIBRARIES},
        **{tool: _first_line(command) or ABSENT for tool, command in _TOOLS.items()},
    }
    return {name: value for name, value in found.items() if value != ABSENT}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT


def driver_version() -> str | None:
    """Of NVIDIA's driver, as NVML says (nvmlSystemGetDriverVersion); None where there is none."""
    try:
        with Nvml() as nvml:
            return nvml.driver_version()
    except NotAvailable:
        return None


def _first_line(command: tuple[str, ...]) -> str | None:
    """What a compiler calls itself: its first line, of nvcc's the one with the release."""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=True, env=untranslated()
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [line for line in ended.stdout.splitlines() if line.strip()]
    release = [line for line in lines if "release" in line]
    return next(iter([*release, *lines]), None)
