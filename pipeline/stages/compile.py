"""compile: variants -> binaries and static facts, for targets that need not be present.

In: a CompileSpec and the variants of one round (Generated). Out: a CompileOutput; the binaries, intermediate
representations and logs lie in one store entry per variant.

    python -m pipeline.stages.compile --spec S.json --variants V.json --out O.json [--root artifacts]
"""

import argparse
import concurrent.futures
import importlib
import os
import queue
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.backends.backend import CompileJob
from pipeline.backends.machine_code.binary_digest import binary_digest
from pipeline.backends.registry import backend
from pipeline.records.outcome import Failure
from pipeline.records.planning.specs import CompileSpec
from pipeline.records.record import Record, digest, read_record
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.variant import Generated, Variant
from pipeline.sandbox import stage_command
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.processes.child_session import EXIT_OUTCOMES
from pipeline.sandbox.processes.fork_server import Channel, Child, ChildEnded, ForkServer, Limits
from pipeline.sandbox.progress_messages import StageProgress
from pipeline.sandbox.untrusted_compilation import UntrustedCompiler, answer
from pipeline.stages import optional
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record
from pipeline.store.outputs import put_output
from pipeline.store.stored_sources import require_sources, root_of
from pipeline.store.temporary import scratch_folder

TIME_LIMIT = 120.0  # seconds for one variant; template-heavy code takes some tens
MEMORY_LIMIT = 8 << 30  # bytes for one worker
OUTPUT_LIMIT = 1 << 30  # bytes of one file
LOG = "log.txt"
WORKER = "pipeline.stages.compile:serve"
UNTRUSTED = "pipeline.stages.compile:serve_untrusted"
SHARED_FROM = 8
"""Variants of a round from which on it pays to make what their compiles have in common: four do for C++."""


class WorkerBug(RuntimeError):
    """The compile worker raised: a bug in a backend, which stops the job."""


class _Work(Record, frozen=True, kw_only=True):
    """What a worker gets for one variant."""

    job: CompileJob
    root: str
    folder: str


class _Untrusted(Record, frozen=True, kw_only=True):
    """What a confined process gets for one variant."""

    job: CompileJob
    root: str


class _Done(Record, frozen=True, kw_only=True):
    """What a worker answers."""

    result: Compiled | Failure
    seconds: float


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.compile", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="CompileSpec as JSON")
    parser.add_argument("--variants", type=Path, required=True, help="Generated as JSON")
    parser.add_argument("--out", type=Path, required=True, help="CompileOutput to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: compile_round(options))


def compile_round(options: argparse.Namespace) -> None:
    """Compile what the store does not hold yet, all workers side by side."""
    started = time.monotonic()
    spec = read_record(options.spec, CompileSpec)
    generated = read_record(options.variants, Generated)
    if spec.recorded is not None:
        records, cached = optional.replay_compile(spec, spec.recorded, generated.variants, options.root), 0
    else:
        records, cached = _records(spec, generated, options)
    output = CompileOutput(
        key=options.spec.stem, round=generated.round, records=records, scale=generated.scale
    )
    put_output(options.out, "compile", output, spec=options.spec)
    stage_command.report(
        f"compile {spec.problem.kernel} {_where(spec)}",
        [record.result for record in records],
        cached=cached,
        seconds=time.monotonic() - started,
    )


def _records(
    spec: CompileSpec, generated: Generated, options: argparse.Namespace
) -> tuple[tuple[CompileRecord, ...], int]:
    """The records of all variants, and how many of them were in the store."""
    require_sources(generated.variants, options.root, options.variants)
    bring_entries(options.root, "compile", (entry_digest(spec, variant) for variant in generated.variants))
    found = {
        variant.id: find_entry(options.root, "compile", entry_digest(spec, variant), CompileRecord)
        for variant in generated.variants
    }
    missing = [variant for variant in generated.variants if found[variant.id] is None]
    made = _compile_all(spec, missing, options) if missing else {}
    records = tuple(found[variant.id] or made[variant.id] for variant in generated.variants)
    return records, len(records) - len(missing)


def _where(spec: CompileSpec) -> str:
    return f"replayed ({spec.recorded.line})" if spec.recorded else f"for {spec.target.architecture}"


def entry_digest(spec: CompileSpec, variant: Variant) -> str:
    """Identity of one variant's artifact: what the compiler sees, and nothing else."""
    problem = spec.problem
    if not backend(variant.backend).shape_matters:
        problem = msgspec.structs.replace(problem, dimensions={})
    implementation = spec.implementations[variant.implementation]
    return digest([variant, implementation.called, problem, spec.target, spec.builds[variant.backend]])


def _compile_all(
    spec: CompileSpec, variants: list[Variant], options: argparse.Namespace
) -> dict[str, CompileRecord]:
    """Worker threads only wait; each drives a forked process that compiles."""
    names = {variant.backend for variant in variants}
    for name in names:
        for module in backend(name).preload:
            importlib.import_module(module)
    todo: queue.SimpleQueue[Variant] = queue.SimpleQueue()
    for variant in variants:
        todo.put(variant)
    workers = min(options.workers, len(variants))
    progress = StageProgress(options.out, len(variants))
    with (
        ForkServer() as server,
        scratch_folder() as scratch,
        concurrent.futures.ThreadPoolExecutor(workers) as pool,
    ):
        reserves = any(backend(name).opens_driver() for name in names)
        drivers = [
            WorkerDriver(server, scratch / f"worker{each}", reserves=reserves) for each in range(workers)
        ]
        shared = str(scratch / "shared") if len(variants) >= SHARED_FROM else None
        each = _Round(spec, options.root, shared, progress)
        futures = [pool.submit(_drain, driver, each, todo) for driver in drivers]
        try:
            made = [future.result() for future in futures]
        finally:
            for driver in drivers:
                driver.stop()
    return {record.variant.id: record for records in made for record in records}


class _Round(NamedTuple):
    """What all variants of it are compiled with."""

    spec: CompileSpec
    root: Path
    shared: str | None
    progress: StageProgress


def _drain(driver: "WorkerDriver", each: _Round, todo: "queue.SimpleQueue[Variant]") -> list[CompileRecord]:
    made = []
    while True:
        try:
            made.append(_compile_one(driver, each, todo.get_nowait()))
        except queue.Empty:
            return made
        each.progress.finished(made[-1].result)


def _compile_one(driver: "WorkerDriver", each: _Round, variant: Variant) -> CompileRecord:
    """Compile into a new store entry and record how it ended."""
    spec, root = each.spec, each.root
    entry = entry_digest(spec, variant)
    job = CompileJob(
        variant=variant,
        implementation=spec.implementations[variant.implementation],
        problem=spec.problem,
        target=spec.target,
        shared=each.shared,
    )
    with new_entry(root, "compile", entry) as folder:
        done = _compile_surely(driver, job, root_of(variant, root), folder)
        record = CompileRecord(
            variant=variant,
            entry=entry,
            result=done.result,
            seconds=done.seconds,
            provenance=provenance(spec.builds[variant.backend]),
        )
        put_record(folder, record)
    # Another process may have been first: then its files are the ones that lie there, so its record counts.
    return find_entry(root, "compile", entry, CompileRecord) or record


def _compile_surely(driver: "WorkerDriver", job: CompileJob, sources: Path, folder: Path) -> _Done:
    """Once more where the machine may be to blame: only what happens twice is an outcome."""
    done = driver.compile(job, sources, folder)
    if not machine_resources.is_doubtful(done.result, folder):
        return done
    machine_resources.require(folder)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = driver.compile(job, sources, folder)
    if machine_resources.is_doubtful(done.result, folder):
        machine_resources.require(folder)
    return done


class WorkerDriver:
    """One worker process, replaced when a variant takes it down."""

    def __init__(self, server: ForkServer, scratch: Path, *, reserves: bool) -> None:
        self._server = server
        self._reserves = reserves
        self._log = scratch.with_suffix(".log")
        self._scratch = scratch
        self._child: Child | None = None

    def compile(self, job: CompileJob, sources: Path, folder: Path) -> _Done:
        """Compile one variant; a worker that dies or hangs is this variant's outcome."""
        started = time.monotonic()
        if job.variant.written:  # by whom we do not know: never where another variant's code will be
            opens_driver = backend(job.variant.backend).opens_driver()
            untrusted = UntrustedCompiler(self._server, UNTRUSTED, binary_digest, opens_driver=opens_driver)
            with scratch_folder() as scratch:
                result = untrusted.compile(_Untrusted(job=job, root=str(sources)), scratch, folder)
            return _Done(result=result, seconds=time.monotonic() - started)
        try:
            if self._child is None:
                self._log.unlink(missing_ok=True)
                self._child = self._start()
            self._child.send(_Work(job=job, root=str(sources), folder=str(folder.absolute())))
            done: _Done = self._child.receive(TIME_LIMIT, _Done)
        except ChildEnded as ended:
            self._child = None
            text = self._log.read_text(errors="replace") if self._log.is_file() else ""
            if ended.exit.kind == "error":  # an exception in our own code is a bug, not an outcome
                machine_resources.require(folder)
                raise WorkerBug(f"{job.variant.implementation} {job.variant.tunables}:\n{text}") from ended
            (folder / LOG).write_text(text)
            failure = Failure(
                outcome=EXIT_OUTCOMES[ended.exit.kind],
                reason=f"the compiler did not finish: {ended.exit.detail or 'it ended without an answer'}",
                log=LOG,
            )
            return _Done(result=failure, seconds=time.monotonic() - started)
        return done

    def stop(self) -> None:
        """End the worker process."""
        if self._child is not None:
            self._child.stop()

    def _start(self) -> Child:
        # A worker serves many variants, so its own clock must not run out: each variant has TIME_LIMIT.
        limits = Limits(seconds=86400.0, memory=MEMORY_LIMIT, reserves=self._reserves, output=OUTPUT_LIMIT)
        self._scratch.mkdir(exist_ok=True)
        temporary = {"TMPDIR": str(self._scratch)}  # of compilers: what a killed one leaves goes with it
        return self._server.start(WORKER, limits=limits, log=self._log, environment=temporary)


def serve(channel: Channel) -> None:
    """Runs in a forked worker: compile what arrives until the channel closes."""
    tempfile.tempdir = None  # looked up anew: it has one of its own
    while True:
        try:
            work: _Work = channel.receive(_Work)
        except EOFError:
            return
        compiler, root = backend(work.job.variant.backend), Path(work.root)
        compiler.share(work.job, root)  # not the variant's own time
        started = time.monotonic()
        result = compiler.compile(work.job, root, Path(work.folder))
        channel.send(_Done(result=result, seconds=time.monotonic() - started))


def serve_untrusted(channel: Channel) -> None:
    """Runs in a confined process: compile one job."""
    work: _Untrusted = channel.receive(_Untrusted)
    compiler = backend(work.job.variant.backend)
    answer(channel, lambda folder: compiler.compile(work.job, Path(work.root), folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
