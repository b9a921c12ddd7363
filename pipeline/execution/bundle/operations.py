"""What `kernelmill bundle` does and prints: options in, an exit code out."""

import importlib.util
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.execution.bundle import bundle_text
from pipeline.plan.spec_files import write_spec
from pipeline.records.errors import BundleError, KernelmillError
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import AggregateSpec, key_of
from pipeline.records.record import read_record
from pipeline.records.results.aggregated import Summary
from pipeline.report.summary import summary_text

MIB = 1 << 20
UNFINISHED = 3
"""Exit code where a bundle was written, but not every task came to its end."""


class RunLimits(NamedTuple):
    """Of a run and its bundle."""

    minutes: float | None
    """None: until the end."""
    mebibytes: float
    binaries: bool


def pack(
    overrides: tuple[str, ...], out: Path, *, python: str, machine: str | None, extras: Sequence[str]
) -> int:
    """Pack a job after its overrides were found right, and say how to run it."""
    from pipeline.execution.bundle.packing import OF_BACKEND, TargetPython
    from pipeline.execution.bundle.packing import pack as pack_job
    from pipeline.plan.local_machine import read_machine
    from pipeline.plan.plan_inputs import gather_inputs

    (material,) = gather_inputs((overrides,), Path.cwd(), read_machine())
    used = {each.backend for kernel in material.kernels.values() for each in kernel.implementations.values()}
    wanted = (*extras, *(name for backend in sorted(used) for name in OF_BACKEND.get(backend, ())))
    target = TargetPython(python=python, machine=machine or platform.machine())
    packed = pack_job(out, overrides, target, extras=tuple(dict.fromkeys(wanted)), root=Path.cwd())
    print(
        f"{out}: {packed.size / MIB:.1f} MiB, commit {packed.revision or 'unknown'}, for Python",
        end=" ",
    )
    print(f"{target.python} on {target.machine}, with", end=" ")
    print(", ".join(f"{name} {version}" for name, version in packed.libraries.items()))
    print(f"there:   python3 {out.name} run [--minutes N] [--with-binaries]")
    print("here:    kernelmill bundle ingest results.kmb")
    return 0


def run(overrides: tuple[str, ...], out: Path, limits: RunLimits, *, root: Path) -> int:
    """Plan, run, write the bundle, and print the winners."""
    from pipeline.execution.bundle.offline_run import OfflineRunner
    from pipeline.execution.bundle.writing import BundleRequest, write
    from pipeline.plan.plan_cache import current_plan
    from pipeline.store.run_lock import take_lock

    lock = take_lock(root / ".lock")
    try:
        plan = current_plan(overrides, root=Path.cwd(), store=root)
        spec = read_record(spec_path(root, "aggregate", plan.aggregate), AggregateSpec)
        ran = OfflineRunner(plan, root, minutes=limits.minutes).run(spec)
        request = BundleRequest(
            overrides=overrides, binaries=limits.binaries, limit=round(limits.mebibytes * MIB)
        )
        written = write(out, request, plan, ran, root=root)
    finally:
        lock.close()
    tables_here(ran.spec, root)
    if written.note:
        print(f"note     {written.note}")
    print(f"bundle   {out} ({written.size / MIB:.2f} MiB, {written.manifest.identity})")
    return UNFINISHED if bundle_text.print_unfinished(written.manifest) else 0


def ingest(files: Sequence[Path], root: Path, *, tracking: str | None, replace: bool) -> int:
    """Merge each bundle, make its tables and report, log it, and say what was new."""
    from pipeline.execution.bundle import final_stages, merging
    from pipeline.execution.bundle.bundle_file import read_bundle
    from pipeline.execution.bundle.bundle_validation import check
    from pipeline.store.run_lock import take_lock

    settings = final_stages.tracking_of(tracking, Path.cwd())
    for path in files:
        bundle = read_bundle(path)
        checked = check(bundle)
        if not checked.spec.tasks:
            raise BundleError(f"{path}: no task finished there: kernelmill bundle show {path}")
        lock = take_lock(root / ".lock")
        try:
            merge = merging.decide(bundle, checked, root, replace=replace)
            merging.write(bundle, checked, merge, root)
            closed = final_stages.run_final_stages(
                final_stages.spec_here(bundle, checked.spec, settings), root
            )
        finally:
            lock.close()
        print()
        print(bundle_text.results(closed))
        print(bundle_text.merged(bundle.manifest, merge.counts()))
        bundle_text.print_unfinished(bundle.manifest)
    return 0


def show(files: Sequence[Path]) -> int:
    """Print what bundles hold."""
    from pipeline.execution.bundle.bundle_file import read_bundle

    for path in files:
        print(bundle_text.contents(read_bundle(path).manifest))
    return 0


def tables_here(spec: AggregateSpec, root: Path) -> None:
    """Print the winners where this machine has what tables need; home makes them anyway."""
    from pipeline.execution.bundle.final_stages import run_one
    from pipeline.execution.chain.stage_commands import StageCommands

    if not spec.tasks:
        return
    if importlib.util.find_spec("pyarrow") is None:
        print("note     no tables here, because this machine has no pyarrow; they are made at home")
        return
    key = key_of(spec.experiment, spec)
    write_spec(root, "aggregate", key, spec)
    aggregate = StageCommands(root, cores=1).of_keys("aggregate", {"aggregate": key})
    command = msgspec.structs.replace(aggregate, prepare=())  # nothing else follows here
    try:
        run_one(command)
    except KernelmillError as error:
        print(f"note     no tables here: {error}")
        return
    print()
    print(summary_text(read_record(Path(str(command.output)), Summary)))
