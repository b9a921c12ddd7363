"""What `kernelmill bundle` does and prints: options in, an exit code out."""

import collections
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.execution.bundle.bundle_file import Bundle, BundleManifest, TaskEnd
from pipeline.execution.bundle.writing import part_of
from pipeline.execution.stage_commands import Command, StageCommands, run_all
from pipeline.performance.quantities import counted
from pipeline.plan.config.compose import composer
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import parse
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.spec_files import write_spec
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import BundleError, KernelmillError
from pipeline.records.layout import STAGES, spec_path
from pipeline.records.planning.specs import AggregateSpec, key_of
from pipeline.records.record import Record, read_record
from pipeline.records.results.aggregated import Summary
from pipeline.records.results.tracked import Tracked, TrackedCounts, TrackOutput
from pipeline.report.summary import summary_text

if TYPE_CHECKING:
    from pipeline.execution.bundle.packing import Packed, TargetPython


class FinalOutputs(Record, frozen=True, kw_only=True):
    """Where the results are read."""

    summary: str
    tracked: str
    report: str


def spec_here(bundle: Bundle, spec: AggregateSpec, tracking: Tracking) -> AggregateSpec:
    """The spec for this checkout: its tables are made here and logged as is usual here, the results there."""
    return msgspec.structs.replace(
        spec, origin=bundle.manifest.origin, tracking=tracking, build=StageBuilds().aggregate()
    )


def tracking_of(name: str | None, repository: Path) -> Tracking:
    """An option of conf/tracking; None: the one that config.yaml chooses.

    Raises
    ------
    ConfigError
        There is no such option.
    """
    lines = () if name is None else (f"tracking={name}",)
    overrides = parse(lines, repository / "conf")
    with composer(repository / "conf") as hydra:
        return OptionLoader(hydra, overrides, repository).settings().tracking


def run_final_stages(spec: AggregateSpec, root: Path) -> FinalOutputs:
    """Run aggregate, track, report, and put the report into the sweep's run.

    Raises
    ------
    BundleError
        A stage failed; its last words are in the text.
    """
    key = key_of(spec.experiment, spec)
    write_spec(root, "aggregate", key, spec)
    commands = StageCommands(root, len(os.sched_getaffinity(0))).final(key)
    for command in commands:
        run_one(command)
    outputs = {command.stage: str(command.output) for command in commands if command.output is not None}
    return FinalOutputs(summary=outputs["aggregate"], tracked=outputs["track"], report=outputs["report"])


def run_one(command: Command) -> None:
    """Run a command that has to succeed.

    Raises
    ------
    BundleError
        It did not.
    """
    (job,) = run_all([command], cores=1, deadline=None, say=lambda line: print(line, file=sys.stderr))
    if job.error:
        raise BundleError(f"{job.error} (log: {command.log})")


MIB = 1 << 20
_WHERE = {"new": "new", "known": "here already", "replaced": "replaced", "partial": "without binaries"}


def contents(manifest: BundleManifest) -> str:
    """Experiment, machine, tasks, outcomes, files."""
    return "\n".join([*_head(manifest), "", *_tasks(manifest), "", *_files(manifest)]) + "\n"


def merged(manifest: BundleManifest, counts: Mapping[str, int]) -> str:
    """One line: what the store took, or that it had everything."""
    if set(counts) <= {"known"}:
        return f"bundle   {manifest.identity}: nothing new, everything in it was here already"
    parts = [f"{counts[action]} {words}" for action, words in _WHERE.items() if action in counts]
    aside = f" (what was replaced: artifacts/bundles/{manifest.identity}/replaced)"
    return f"bundle   {manifest.identity}: {', '.join(parts)}{aside if 'replaced' in counts else ''}"


def results(closed: FinalOutputs) -> str:
    """The winners, and where to read on."""
    tracked = read_record(Path(closed.tracked), TrackOutput).result
    lines = [summary_text(read_record(Path(closed.summary), Summary)), f"report   {closed.report}"]
    if isinstance(tracked, Tracked):
        runs = f"{_runs(tracked.measured)} measured, {_runs(tracked.compiled)} only compiled"
        lines.append(f"MLflow   make ui · runs: {runs} · {tracked.links.sweep}")
    else:
        lines.append(f"MLflow   {tracked.reason}")
    return "\n".join(lines)


def print_unfinished(manifest: BundleManifest) -> bool:
    """Name the tasks that did not finish; whether there are any."""
    unfinished = [task for task in manifest.tasks if task.missing]
    for task in unfinished:
        print(f"not done {task.name}: {task.missing}", file=sys.stderr)
    return bool(unfinished)


def _runs(counts: TrackedCounts) -> str:
    named = {"new": counts.new, "there already": counts.same, "replaced": counts.replaced}
    return " + ".join(f"{count} {name}" for name, count in named.items() if count) or "none"


def _head(manifest: BundleManifest) -> Iterator[str]:
    yield f"{manifest.experiment}: {manifest.description}"
    yield f"bundle       {manifest.identity} of {manifest.created}, schema {manifest.schema_version}"
    yield f"overrides    {' '.join(manifest.overrides) or 'none'}"
    yield f"commit       {manifest.git or 'not a checkout'}"
    yield f"device       {manifest.device}"
    for name, value in manifest.environment.items():
        yield f"  {name:<18} {value}"


def _tasks(manifest: BundleManifest) -> Iterator[str]:
    ran = sum(job.seconds for job in manifest.jobs)
    done = sum(task.missing is None for task in manifest.tasks)
    yield f"{counted(len(manifest.tasks), 'task')}, {done} to the end; {ran:.0f} s of stages"
    for task in manifest.tasks:
        yield f"  {task.name}"
        yield f"    {_outcomes(task)}"
        if task.missing:
            yield f"    not done: {task.missing}"


def _outcomes(task: TaskEnd) -> str:
    stages = (
        f"{stage} {', '.join(f'{count} {outcome}' for outcome, count in task.outcomes[stage].items())}"
        for stage in STAGES
        if task.outcomes.get(stage)
    )
    return " · ".join(stages) or "nothing ran"


def _files(manifest: BundleManifest) -> Iterator[str]:
    total = sum(file.size for file in manifest.files)
    yield f"{counted(len(manifest.files), 'file')}, {total / MIB:.1f} MiB unpacked"
    for file in manifest.files:
        if file.cut_from is not None:
            yield f"  cut      {file.name}: {file.size:,} of {file.cut_from:,} bytes"
    stayed: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for left in manifest.left_out:
        stayed[part_of(left.name), left.reason].append(left.size)
    for (part, reason), sizes in stayed.items():
        files = f"{counted(len(sizes), f'{part} file')}, {sum(sizes) / MIB:.1f} MiB"
        yield f"  left out {files} ({reason}); digests are in the manifest"


UNFINISHED = 3
"""Exit code if a bundle was written, but not every task finished."""


class RunLimits(NamedTuple):
    """Of a run and its bundle."""

    minutes: float | None
    """None: until the end."""
    mebibytes: float
    binaries: bool


def pack(  # noqa: PLR0913  (each of them is an option)
    overrides: tuple[str, ...],
    out: Path,
    *,
    python: str,
    machine: str | None,
    extras: Sequence[str],
    after: tuple[Path, ...] = (),
) -> int:
    """Pack a job after its overrides were found right, and say how to run it."""
    from pipeline.backends.registry import backend
    from pipeline.execution.bundle.bundle_file import read_bundle
    from pipeline.execution.bundle.packing import TargetPython
    from pipeline.execution.bundle.packing import pack as pack_job
    from pipeline.plan.local_machine import read_machine
    from pipeline.plan.plan_inputs import gather_inputs

    for path in after:
        read_bundle(path)  # one that cannot be read is said here, not there
    (material,) = gather_inputs((overrides,), Path.cwd(), read_machine())
    used = {each.backend for kernel in material.kernels.values() for each in kernel.implementations.values()}
    wanted = (*extras, *(package for name in sorted(used) for package in backend(name).packages))
    target = TargetPython(python=python, machine=machine or platform.machine())
    needed = tuple(dict.fromkeys(wanted))
    packed = pack_job(out, overrides, target, extras=needed, after=after, root=Path.cwd())
    _print_packed(out, packed, target)
    print(f"there:   python3 {out.name} run [--minutes N] [--with-binaries]")
    print("here:    kernelmill bundle ingest results.kmb")
    return 0


def pack_check(out: Path, *, python: str, machine: str | None, extras: Sequence[str]) -> int:
    """Pack a job that checks the device, with what all backends need, and say how to run it."""
    from pipeline.backends.registry import backend, backend_names
    from pipeline.execution.bundle.bootstrap import CHECK
    from pipeline.execution.bundle.packing import TargetPython
    from pipeline.execution.bundle.packing import pack as pack_job

    target = TargetPython(python=python, machine=machine or platform.machine())
    packages = (package for name in backend_names() for package in backend(name).packages)
    needed = tuple(dict.fromkeys((*extras, *packages)))
    packed = pack_job(out, (), target, extras=needed, runs=CHECK, root=Path.cwd())
    _print_packed(out, packed, target)
    print(f"there:   python3 {out.name} run")
    print("here:    device_check.json is the result")
    return 0


def _print_packed(out: Path, packed: "Packed", target: "TargetPython") -> None:
    libraries = ", ".join(f"{name} {version}" for name, version in packed.libraries.items())
    size, commit = f"{packed.size / MIB:.1f} MiB", packed.revision or "unknown"
    python = f"Python {target.python} on {target.machine} (another: --python, --machine)"
    print(f"{out}: {size}, commit {commit}, for {python}, with {libraries}")


def run(overrides: tuple[str, ...], out: Path, limits: RunLimits, *, root: Path) -> int:
    """Plan, run, write the bundle, and print the winners."""
    from pipeline.execution.bundle.offline_run import OfflineRunner
    from pipeline.execution.bundle.packing import SEEDS
    from pipeline.execution.bundle.writing import BundleRequest, write
    from pipeline.plan.plan_cache import current_plan
    from pipeline.store.run_lock import take_lock

    lock = take_lock(root / ".lock")
    try:
        take_seeds(Path.cwd() / SEEDS, root)
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
    return UNFINISHED if print_unfinished(written.manifest) else 0


def take_seeds(folder: Path, root: Path) -> None:
    """Merge the bundles that the job brought along, so that what they hold is not done again."""
    from pipeline.execution.bundle import merging
    from pipeline.execution.bundle.bundle_file import read_bundle

    for path in sorted(folder.glob("*.kmb")):
        bundle = read_bundle(path)
        checked = merging.check(bundle)
        merge = merging.decide(bundle, checked, root, replace=False)
        merging.write(bundle, checked, merge, root)
        print(f"before   {merged(bundle.manifest, merge.counts()).removeprefix('bundle   ')}")


def ingest(files: Sequence[Path], root: Path, *, tracking: str | None, replace: bool) -> int:
    """Merge each bundle, make its tables and report, log it, and say what was new."""
    from pipeline.execution.bundle import merging
    from pipeline.execution.bundle.bundle_file import read_bundle
    from pipeline.execution.bundle.merging import check
    from pipeline.store.run_lock import take_lock

    settings = tracking_of(tracking, Path.cwd())
    for path in files:
        bundle = read_bundle(path)
        checked = check(bundle)
        if not checked.spec.tasks:
            raise BundleError(f"{path}: no task finished there: kernelmill bundle show {path}")
        lock = take_lock(root / ".lock")
        try:
            merge = merging.decide(bundle, checked, root, replace=replace)
            merging.write(bundle, checked, merge, root)
            closed = run_final_stages(spec_here(bundle, checked.spec, settings), root)
        finally:
            lock.close()
        print()
        print(results(closed))
        print(merged(bundle.manifest, merge.counts()))
        print_unfinished(bundle.manifest)
    return 0


def show(files: Sequence[Path]) -> int:
    """Print what bundles hold."""
    from pipeline.execution.bundle.bundle_file import read_bundle

    for path in files:
        print(contents(read_bundle(path).manifest))
    return 0


def tables_here(spec: AggregateSpec, root: Path) -> None:
    """Print the winners where this machine has what tables need; home makes them anyway."""
    from pipeline.execution.stage_commands import StageCommands

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
