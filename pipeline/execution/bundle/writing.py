"""Write the bundle of a plan that ran, within a size limit, with an anonymous description of the machine."""

import datetime
import importlib.metadata
import platform
import subprocess
from pathlib import Path

from pipeline.backends.devices.cuda.nvml import NotAvailable, Nvml
from pipeline.execution.bundle.bundle_file import packed, write_bundle
from pipeline.execution.bundle.contents import BundleItem, Part, choose, items_of
from pipeline.execution.bundle.manifest import BundleManifest
from pipeline.execution.bundle.offline_run import OfflineResult
from pipeline.plan.identity.tool_versions import all_library_versions
from pipeline.plan.local_machine import Machine, read_machine
from pipeline.records.environment import untranslated
from pipeline.records.errors import BundleError
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.record import Record
from pipeline.store.current_provenance import revision

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
    names = []
    if machine.gpu is not None and machine.gpu[0] in kinds:
        names.append(machine.gpu[2])
    if not names or "cpu" in kinds:
        names.append(machine.cpu.facts["model"])
    return " and ".join(names)


def environment_of(machine: Machine) -> dict[str, str]:
    """Python, libraries, tools, driver, processor and system; what is not there is not in it."""
    facts = machine.cpu.facts
    found = {
        "gpu": machine.gpu[2] if machine.gpu else ABSENT,
        "architecture": machine.gpu[1] if machine.gpu else machine.cpu.architecture,
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
