"""A store with real machine code: one matmul compiled for every GPU target and for this CPU."""

import fcntl
import os
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.plan.config.compose import composer
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.layout import entry_path, output_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import AggregateSpec, Build, CompileSpec, TaskRow
from pipeline.records.provenance import Provenance
from pipeline.records.record import digest, to_json
from pipeline.records.results.compiled import CompileOutput, CompileRecord
from pipeline.store.atomic import write_atomic
from pipeline.store.entries import new_entry, put_record
from tests.backends.triton.triton_jobs import ROOT, TARGETS, declared_job, kernel

DIMENSIONS = {"M": 256, "N": 3584, "K": 1024}
BUILD = Build(code="c0de", toolchain={"triton": "3"})


def shared_code(factory: pytest.TempPathFactory) -> Path:
    """The store, which tests only read; one for a session of tests."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of all workers
    root, whole = folder / "machine-code" / "artifacts", folder / "machine-code.whole"
    with (folder / "machine-code.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other workers wait for it
        if not whole.exists():
            write_code(root)
            whole.touch()
    return root


def write_code(root: Path) -> None:
    """The default variant on every target, one with three stages on the H200, one that failed there."""
    jobs = {name: [_job(name)] for name in (*TARGETS, "cpu")}
    jobs["h200"] += [_job("h200", num_stages=3)]
    tasks = [_write_task(root, hardware, each) for hardware, each in jobs.items()]
    spec = AggregateSpec(
        experiment="code",
        description="",
        tasks=tuple(tasks),
        pruned=(),
        tracking=Tracking(name="none", description="", enabled=False, uri="embedded", experiment="x"),
        build=BUILD,
    )
    write_atomic(spec_path(root, "aggregate", "code"), to_json(spec))


def _job(hardware: str, **tunables: int) -> CompileJob:
    if hardware != "cpu":
        return declared_job("matmul", hardware, "bfloat16", dimensions=DIMENSIONS, **tunables)
    job = declared_job("matmul", "h200", "bfloat16", dimensions=DIMENSIONS)
    implementation = kernel("matmul").implementations["cpp"]
    defaults = {name: value.default for name, value in implementation.tunables.items()}
    variant = msgspec.structs.replace(
        job.variant, implementation="cpp", backend="cpp", tunables=defaults | tunables
    )
    target = Target(kind="cpu", architecture="native", limits={})
    return msgspec.structs.replace(job, variant=variant, implementation=implementation, target=target)


def _write_task(root: Path, hardware: str, jobs: list[CompileJob]) -> TaskRow:
    key = f"matmul-{hardware}"
    records = [_record(root, job) for job in jobs]
    if hardware == "h200":
        records.append(_failed(jobs[0]))
    write_atomic(
        output_path(root, "compile", key, 0), to_json(CompileOutput(key=key, round=0, records=tuple(records)))
    )
    first = jobs[0]
    spec = CompileSpec(
        parent="p",
        problem=first.problem,
        implementations={first.variant.implementation: first.implementation},
        target=first.target,
        builds={},
    )
    write_atomic(spec_path(root, "compile", key), to_json(spec))
    return _task(hardware, first, key)


def _record(root: Path, job: CompileJob) -> CompileRecord:
    entry = digest([job.variant, job.target])
    with new_entry(root, "compile", entry) as folder:
        record = CompileRecord(
            variant=job.variant,
            entry=entry,
            result=backend(job.variant.backend).compile(job, ROOT, folder),
            seconds=0.1,
            provenance=_provenance("2026-01-02T00:00:00+00:00"),
        )
        put_record(folder, record)
    assert entry_path(root, "compile", entry).is_dir()
    return record


def _failed(job: CompileJob) -> CompileRecord:
    variant = msgspec.structs.replace(job.variant, tunables=job.variant.tunables | {"num_stages": 9})
    return CompileRecord(
        variant=variant,
        entry=digest([variant, "failed"]),
        result=Failure(outcome=Outcome.LAUNCH_ERROR, reason="shared memory: got 2, sm_90 has 1"),
        seconds=0.1,
        provenance=_provenance("2026-01-02T00:00:00+00:00"),
    )


def _provenance(created: str) -> Provenance:
    return Provenance(created=created, host="h", toolchain=BUILD.toolchain, code="c0de", git=None)


def _task(hardware: str, job: CompileJob, key: str) -> TaskRow:
    with composer(ROOT / "conf") as composed:
        kind = composed.option("hardware", hardware)["kind"]
    return TaskRow(
        task=key,
        kernel="matmul",
        workload="prefill",
        hardware=hardware,
        kind=kind,
        device_present=hardware == "cpu",
        optimization="defaults",
        search="grid",
        rounds=1,
        dtype=job.problem.element,
        dimensions=DIMENSIONS,
        flops=1.0,
        bytes=1.0,
        unit="matrix",
        peaks={},
        generate=key,
        compile=key,
        verify=key,
        profile=key,
    )
