"""Write the bundle of a plan that ran, within a size: the largest that can go home as one file."""

import datetime
from pathlib import Path

from pipeline.execution.bundle.archive import packed, write_bundle
from pipeline.execution.bundle.contents import Item, Part, choose, items_of
from pipeline.execution.bundle.machine import device_of, environment_of
from pipeline.execution.bundle.manifest import Manifest
from pipeline.execution.bundle.offline_run import Ran
from pipeline.plan.local_machine import read_machine
from pipeline.records.errors import BundleError
from pipeline.records.plan import Plan
from pipeline.records.record import Record
from pipeline.store.provenance import revision

NOT_ASKED = "binaries stay unless --with-binaries"


class Request(Record, frozen=True, kw_only=True):
    """What the user wants of the bundle."""

    overrides: tuple[str, ...]
    binaries: bool
    limit: int
    """Bytes of the file."""


class Written(Record, frozen=True, kw_only=True):
    """A bundle that was written."""

    size: int
    manifest: Manifest
    note: str | None
    """What had to stay because of the size."""


def write(path: Path, request: Request, plan: Plan, ran: Ran, *, root: Path) -> Written:
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
    request: Request, plan: Plan, ran: Ran, items: tuple[Item, ...], stays: dict[Part, str]
) -> tuple[Manifest, bytes]:
    chosen = choose(items, stays)
    machine = read_machine()
    measured = {task.row.kind for task in plan.tasks if task.row.device_present}
    manifest = Manifest(
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
