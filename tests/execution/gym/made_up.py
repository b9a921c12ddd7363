"""Verdicts that no stage gave: results of a variant, failed in a stage or measured."""

from typing import Any

from pipeline.execution.gym.evaluation import VariantEvaluation
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import TaskRow
from pipeline.records.provenance import Provenance
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.profiled import (
    Ceilings,
    Comparison,
    ConfidenceInterval,
    Profiled,
    ProfileRecord,
    Timing,
)
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import Verified, VerifyRecord, WhereRun

PROVENANCE = Provenance(created="2026-01-01T00:00:00+00:00", host="h", toolchain={"torch": "2"}, code="c")
STAGES = ("compile", "verify", "profile")
VARIANT = Variant(
    kernel="softmax", implementation="cpp", backend="cpp", source_digest="s", attributes={},
    tunables={"LANES": 8, "ONLINE": False},
)  # fmt: skip
ROW = TaskRow(
    task="t", kernel="softmax", workload="awkward", hardware="cpu", kind="cpu", device_present=True,
    optimization="full", search="grid", rounds=1, dtype="float32", dimensions={"rows": 37, "cols": 1031},
    flops=1e3, bytes=1e3, unit="vector", peaks={}, generate="g", compile="c", verify="v", profile="p",
)  # fmt: skip


def judged(stage: str, outcome: Outcome) -> VariantEvaluation:
    """A variant that failed there, after it had passed what comes before."""
    failure = Failure(outcome=outcome, reason="because")
    reached = STAGES[: STAGES.index(stage)]
    return VariantEvaluation(
        result=result(**{each: _passed(each) for each in reached}, **{stage: failure}), stage=stage
    )


def measured(*, low: float, value: float, high: float, seconds: float = 1e-5) -> VariantEvaluation:
    """A variant that passed everything, with that speed-up against eager."""
    records = {stage: _passed(stage) for stage in STAGES[:2]}
    return VariantEvaluation(
        result=result(**records, profile=profiled(low=low, value=value, high=high, seconds=seconds)),
        stage="profile",
    )


def result(row: TaskRow = ROW, variant: Variant = VARIANT, **found: Any) -> Result:
    """What the stages found, by stage; those that are not named were not reached."""
    common = {"variant": variant, "seconds": 0.5, "provenance": PROVENANCE}
    records: dict[str, Any] = {}
    if "compile" in found:
        records["compile"] = CompileRecord(entry="ce", result=found["compile"], **common)
    if "verify" in found:
        where: WhereRun = "recorded" if found["verify"] == Verified() else "cpu"
        records["verify"] = VerifyRecord(
            entry="ve", result=found["verify"], where=where, checks=(), shapes=(), seeds=(1,), **common
        )
    if "profile" in found:
        records["profile"] = ProfileRecord(entry="pe", result=found["profile"], **common)
    return Result(
        task=row, round=0, variant=variant, id=variant.id, default=True, architecture="x86", **records
    )


def _passed(stage: str) -> Any:
    if stage == "compile":
        facts = StaticFacts(code_bytes=100, spills=0, occupancy_bound=0.5, instructions={"fma": 3})
        return Compiled(
            artifact="kernel.so", artifact_digest="a", functions=("softmax",), facts=facts, files=()
        )
    return Verified(worst_share=0.1, worst_error=1e-9)


def profiled(*, low: float, value: float, high: float, seconds: float) -> Profiled:
    """A measurement against eager."""
    timing = Timing(
        samples=(seconds,) * 3,
        median=ConfidenceInterval(value=seconds, low=seconds, high=seconds, confidence=0.95),
        calls_per_batch=1,
        setup_seconds=0.1,
        first_call_seconds=0.1,
    )
    speedup = ConfidenceInterval(value=value, low=low, high=high, confidence=0.95)
    return Profiled(
        timing=timing,
        comparisons=(Comparison(baseline="eager", timing=timing, speedup=speedup, verdict="faster"),),
        ceilings=Ceilings(copy_bandwidth=1e10, cache_bandwidth=1e11, matrix_flops=1e11, vector_flops=1e11),
        flops=1e3,
        bytes=1e3,
        roofline_share=0.5,
        bound="memory",
        device={"name": "A Processor"},
    )
