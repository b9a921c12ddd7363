"""A run that never happened: a real plan, and outputs and store entries as the stages would leave them."""

import functools
import random
import tempfile
from pathlib import Path

from pipeline.execution.bundle.bundle_file import Bundle, read_bundle
from pipeline.execution.bundle.offline_run import OfflineResult, OfflineRunner
from pipeline.execution.bundle.writing import BundleRequest, Written, write
from pipeline.execution.stage_commands import FinishedStage
from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import output_path, spec_path
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.planning.specs import AggregateSpec, GenerateSpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, digest, read_record, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord, StaticFacts
from pipeline.records.results.profiled import (
    Ceilings,
    ConfidenceInterval,
    Profiled,
    ProfileOutput,
    ProfileRecord,
    Timing,
)
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from pipeline.stages.generate import generate
from pipeline.stages.table import STAGES
from pipeline.store.atomic import write_atomic
from pipeline.store.entries import new_entry, put_record
from tests.paths import ROOT

LINES = ("experiment=smoke", "kernel=softmax", "hardware=cpu")
EARLY, LATE = "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"
BINARY = b"\x7fELF" + random.Random(1).randbytes(20_000)  # which no compression makes small


class Run(Record, frozen=True, kw_only=True):
    """A store with what a run left in it."""

    root: str
    plan: Plan
    ran: OfflineResult


def make_run(root: Path, *, created: str = EARLY, seconds: float = 1e-5, finished: bool = True) -> Run:
    """Plan one task for real, and leave outputs for it that were made at `created`.

    Not `finished`: time was up before profile wrote its output, when it had measured every variant.
    """
    plan = _planned(root)
    row = plan.tasks[0].row
    generated = generate(
        read_record(spec_path(root, "generate", row.generate), GenerateSpec),
        [],
        key=row.generate,
        round_number=0,
    )
    write_atomic(output_path(root, "generate", row.generate, 0), to_json(generated))
    made = _Maker(root, created, seconds)
    variants = generated.variants
    outputs = {
        "compile": CompileOutput(key=row.compile, round=0, records=tuple(map(made.compiled, variants))),
        "verify": VerifyOutput(key=row.verify, round=0, records=tuple(map(made.verified, variants))),
        "profile": ProfileOutput(key=row.profile, round=0, records=tuple(map(made.profiled, variants))),
    }
    if not finished:
        del outputs["profile"]
    for stage, output in outputs.items():
        write_atomic(output_path(root, stage, output.key, 0), to_json(output))
        write_atomic(STAGES[stage].log_path(root, output.key), f"{Path.cwd()}/x: {stage} passed\n".encode())
    spec = read_record(spec_path(root, "aggregate", plan.aggregate), AggregateSpec)
    return Run(root=str(root), plan=plan, ran=OfflineRunner(plan, root, minutes=0).run(spec))


def _planned(root: Path) -> Plan:
    """The plan, its specs under `root`."""
    plan, files = _specs()
    for name, content in files.items():
        write_atomic(root / name, content)
    return plan


@functools.cache
def _specs() -> tuple[Plan, dict[str, bytes]]:
    """Planned once for all tests."""
    with tempfile.TemporaryDirectory() as folder:
        plan = current_plan(LINES, root=ROOT, store=Path(folder))
        found = (path for path in Path(folder).rglob("*.json"))
        return plan, {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def bundle_of(run: Run, path: Path, *, binaries: bool = False, limit: int = 1 << 24) -> Written:
    """Write its bundle."""
    request = BundleRequest(overrides=LINES, binaries=binaries, limit=limit)
    return write(path, request, run.plan, run.ran, root=Path(run.root))


def read_made_up(root: Path, path: Path, *, binaries: bool = False, created: str = EARLY) -> Bundle:
    """The bundle of a run of its own."""
    seconds = 1e-5 if created == EARLY else 2e-5
    bundle_of(make_run(root, created=created, seconds=seconds), path, binaries=binaries)
    return read_bundle(path)


def job(stage: str) -> FinishedStage:
    """A job that ended well."""
    return FinishedStage(stage=stage, key="k-1", round=0, seconds=1.0)


class _Maker:
    def __init__(self, root: Path, created: str, seconds: float) -> None:
        self._root = root
        self._seconds = seconds
        self._provenance = Provenance(created=created, host="h", toolchain={"torch": "2"}, code="c", git="g")

    def compiled(self, variant: Variant) -> CompileRecord:
        result = Compiled(
            artifact="kernel.so",
            artifact_digest="a",
            functions=("softmax",),
            facts=StaticFacts(code_bytes=100),
            files=("kernel.so", "sources/softmax.cpp"),
        )
        record = CompileRecord(variant=variant, result=result, **self._same("compile", variant))
        files = {"kernel.so": BINARY, "log.txt": b"ok\n", "sources/softmax.cpp": b"int x;\n"}
        return self._put("compile", record, files)

    def verified(self, variant: Variant) -> VerifyRecord:
        record = VerifyRecord(
            variant=variant,
            result=Verified(worst_share=0.1, worst_error=1e-9),
            where="cpu",
            checks=(),
            shapes=(),
            seeds=(1,),
            **self._same("verify", variant),
        )
        return self._put("verify", record, {})

    def profiled(self, variant: Variant) -> ProfileRecord:
        median = ConfidenceInterval(
            value=self._seconds, low=self._seconds, high=self._seconds, confidence=0.95
        )
        timing = Timing(
            samples=(self._seconds,) * 3,
            median=median,
            calls_per_batch=1,
            setup_seconds=0.1,
            first_call_seconds=0.1,
        )
        ceilings = Ceilings(copy_bandwidth=1e10, cache_bandwidth=1e11, matrix_flops=1e11, vector_flops=1e11)
        result = Profiled(
            timing=timing,
            comparisons=(),
            ceilings=ceilings,
            flops=1e3,
            bytes=1e3,
            roofline_share=0.5,
            bound="memory",
            device={"name": "Other Machine"},
        )
        record = ProfileRecord(variant=variant, result=result, **self._same("profile", variant))
        return self._put("profile", record, {"rounds.json": b"[]"})

    def _same(self, stage: str, variant: Variant) -> dict:
        entry = digest([stage, variant.id])
        return {"entry": entry, "seconds": self._seconds, "provenance": self._provenance}

    def _put(self, stage: str, record: Record, files: dict[str, bytes]) -> Record:
        with new_entry(self._root, stage, record.entry) as folder:
            for name, content in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)
            put_record(folder, record)
        return record
