"""A made-up run: the files that the stages of a small experiment leave, with failures of several kinds."""

import itertools
from pathlib import Path

import numpy as np

from pipeline.records.configuration.hardware import Quantity, Target
from pipeline.records.configuration.kernel import Implementation, Tunable
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.layout import entry_path, output_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import AggregateSpec, Build, CompileSpec, TaskRow
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, digest, to_json
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord, StaticFacts
from pipeline.records.results.profiled import (
    AbsentBaseline,
    Ceilings,
    Comparison,
    ConfidenceInterval,
    LevelCeiling,
    Profiled,
    ProfileOutput,
    ProfileRecord,
    Timing,
)
from pipeline.records.results.variant import Generated, Pruned, Variant
from pipeline.records.results.verified import CheckResult, Verified, VerifyOutput, VerifyRecord
from pipeline.store.atomic import write_atomic

Configuration = dict[str, bool | int | float | str]

CPP = {"unroll": (1, 2, 4, 8), "vectorize": (False, True), "threads_grain": (1, 16, 64)}
MATMUL_CPP = {"tile_m": (4, 6, 8), "tile_n": (16, 32), "block_k": (128, 256)}
TRITON = {"BLOCK_M": (64, 128), "BLOCK_N": (64, 128, 256), "num_warps": (4, 8), "num_stages": (2, 3)}
ROW = {"BLOCK": (1024, 2048, 4096), "num_warps": (1, 4, 8)}

PEAKS: dict[str, dict[str, tuple[float, str]]] = {
    "cpu": {},
    "h200": {
        "dram_bandwidth": (4.8, "TB/s"),
        "matrix_float16": (989, "TFLOP/s"),
        "vector_float32": (67, "TFLOP/s"),
    },
    "h100": {
        "dram_bandwidth": (3.35, "TB/s"),
        "matrix_float16": (989, "TFLOP/s"),
        "vector_float32": (67, "TFLOP/s"),
    },
    "a100": {
        "dram_bandwidth": (2039, "GB/s"),
        "matrix_float16": (312, "TFLOP/s"),
        "vector_float32": (19.5, "TFLOP/s"),
    },
    "b200": {
        "dram_bandwidth": (8, "TB/s"),
        "matrix_float16": (2250, "TFLOP/s"),
        "vector_float32": (80, "TFLOP/s"),
    },
    "rtx4090": {"dram_bandwidth": (1008, "GB/s"), "matrix_float16": (165, "TFLOP/s")},
    "mi300x": {
        "dram_bandwidth": (5.3, "TB/s"),
        "matrix_float16": (1307, "TFLOP/s"),
        "vector_float32": (163, "TFLOP/s"),
    },
    "mi355x": {
        "dram_bandwidth": (8, "TB/s"),
        "matrix_float16": (2500, "TFLOP/s"),
        "vector_float32": (157, "TFLOP/s"),
    },
}
ARCHITECTURES = {
    "cpu": "x86-64-avx2",
    "h200": "sm_90",
    "h100": "sm_90",
    "a100": "sm_80",
    "b200": "sm_100",
    "rtx4090": "sm_89",
    "mi300x": "gfx942",
    "mi355x": "gfx950",
}

PROVENANCE = Provenance(
    created="2025-03-04T10:20:30+00:00",
    host="0a1b2c3d4e5f",
    toolchain={"torch": "2.13.0", "triton": "3.7.1", "g++": "12.2.0", "python": "3.11.2"},
    code="c0de",
    git="2f7c1ab90e11+",
)
BUILD = Build(code="c0de", toolchain=PROVENANCE.toolchain)
CEILINGS = Ceilings(
    copy_bandwidth=2.1e10,
    cache_bandwidth=6.4e10,
    matrix_flops=1.3e11,
    vector_flops=9.6e10,
    level="L3",
    levels=(
        LevelCeiling(name="L1", capacity=64 << 10, bandwidth=2.6e11),
        LevelCeiling(name="L2", capacity=2 << 20, bandwidth=1.2e11),
        LevelCeiling(name="L3", capacity=32 << 20, bandwidth=6.4e10),
        LevelCeiling(name="DRAM", capacity=None, bandwidth=2.1e10),
    ),
    launch_seconds=1.5e-6,
)


class Case(Record, frozen=True, kw_only=True):
    """One task of the sample."""

    kernel: str
    workload: str
    hardware: str
    dtype: str
    implementation: str
    space: dict[str, tuple[bool | int | float | str, ...]]
    dimensions: dict[str, int]
    flops: float
    bytes: float
    unit: str = "vector"
    eager: float | None = None
    """Time of the eager baseline over the best variant's; None where the device is absent."""
    failures: dict[int, tuple[str, Outcome, str]] = {}
    """Place of a variant -> stage, outcome, reason."""
    weak: tuple[str, ...] = ()


def cases() -> list[Case]:
    """Measured, partly failed, wholly failed and absent tasks."""
    gpus = [name for name in PEAKS if name != "cpu"]
    rows, columns = 512, 4096
    softmax = {"flops": 5.0 * rows * columns, "bytes": 8.0 * rows * columns}
    sizes = {"rows": rows, "cols": columns}
    matrix = {"M": 512, "N": 1024, "K": 1024}
    product = {
        "flops": 2.0 * 512 * 1024 * 1024,
        "bytes": 4.0 * (512 * 1024 * 2 + 1024 * 1024),
        "unit": "matrix",
    }
    compile_error = (
        "compile",
        Outcome.COMPILE_ERROR,
        "softmax.cpp:41:17: error: 'lanes' was not declared in this scope",
    )
    no_header = ("compile", Outcome.COMPILE_ERROR, "matmul.cpp:7:10: fatal error: gelu.hpp: No such file")
    cpu = {"hardware": "cpu", "dtype": "float32", "implementation": "cpp"}
    measured = [
        Case(
            kernel="softmax",
            workload="llama3_8b_decode",
            space=CPP,
            dimensions=sizes,
            eager=1.9,
            **softmax,
            **cpu,
            failures={
                3: compile_error,
                5: (
                    "verify",
                    Outcome.WRONG_VALUE,
                    "y[17, 3] = 0.25, expected 0.0312: 31 x the bound, rows=1 cols=4093, seed 3, one_signed",
                ),
                9: ("verify", Outcome.CRASHED, "signal 11 (segmentation fault) on shape rows=1 cols=1"),
                13: ("verify", Outcome.TIMEOUT, "no answer within 30 s"),
                17: (
                    "profile",
                    Outcome.UNSTABLE_TIMING,
                    "interval of the speed-up is 41 % wide after 3 attempts, at most 5 %",
                ),
            },
        ),
        Case(
            kernel="rms_norm",
            workload="llama3_8b_decode",
            space=CPP,
            dimensions=sizes,
            eager=3.4,
            **softmax,
            **cpu,
        ),
        Case(
            kernel="softmax",
            workload="awkward",
            space=CPP,
            dimensions={"rows": 127, "cols": 4093},
            eager=1.01,
            flops=5.0 * 127 * 4093,
            bytes=8.0 * 127 * 4093,
            weak=("zeros",),
            **cpu,
        ),
        Case(
            kernel="matmul",
            workload="bert_base",
            space=MATMUL_CPP,
            dimensions=matrix,
            eager=0.62,
            **product,
            **cpu,
            failures={
                2: ("verify", Outcome.OUT_OF_BOUNDS, "guard band behind c was written: 64 bytes at offset +0")
            },
        ),
        Case(
            kernel="matmul_bias_gelu",
            workload="awkward",
            space=MATMUL_CPP,
            dimensions={"M": 1, "N": 1009, "K": 127},
            **product | {"flops": 2.0 * 1009 * 127},
            **cpu,
            failures=dict.fromkeys(range(12), no_header),
        ),
    ]
    absent = [
        Case(
            kernel=kernel,
            workload="llama3_8b_prefill",
            hardware=gpu,
            dtype="float16",
            implementation="triton",
            **shape,
        )
        for kernel, shape in (
            ("softmax", {"space": ROW, "dimensions": sizes, **softmax}),
            ("rms_norm", {"space": ROW, "dimensions": sizes, **softmax}),
            (
                "matmul",
                {
                    "space": TRITON,
                    "dimensions": matrix,
                    **product,
                    "failures": {
                        11: (
                            "compile",
                            Outcome.COMPILE_ERROR,
                            "out of resource: shared memory, required 262144, limit 101376",
                        )
                    },
                },
            ),
        )
        for gpu in gpus
    ]
    return measured + absent


def write_run(root: Path, chosen: list[Case] | None = None) -> AggregateSpec:
    """Write plan, outputs and logs under `root`; the spec itself to `root/spec.json`."""
    random = np.random.default_rng(7)
    tasks = tuple(_write_task(root, case, random) for case in (cases() if chosen is None else chosen))
    spec = AggregateSpec(
        experiment="sample",
        description="Three kernels on this machine's CPU and on seven GPU targets that are not here.",
        tasks=tasks,
        pruned=(
            "softmax × llama3_8b_decode × cpu × tensor_cores: no tunable of the technique 'tensor_cores'",
        ),
        tracking=Tracking(
            name="none", description="", enabled=False, uri="embedded", experiment="kernelmill"
        ),
        build=BUILD,
    )
    write_atomic(root / "spec.json", to_json(spec))
    return spec


def _write_task(root: Path, case: Case, random: np.random.Generator) -> TaskRow:
    variants = [
        _variant(case, dict(zip(case.space, point, strict=True)))
        for point in itertools.product(*case.space.values())
    ]
    name = f"{case.kernel}-{case.workload}-{case.hardware}"
    keys = {
        stage: f"{name}-{digest([stage, case.kernel, case.workload, case.hardware])}"
        for stage in ("generate", "compile", "verify", "profile")
    }
    generated = Generated(
        key=keys["generate"],
        round=0,
        variants=tuple(variants),
        pruned=(
            Pruned(
                implementation=case.implementation,
                rule="BLOCK_M * BLOCK_N * itemsize <= shared_memory_per_block",
                reason="the tile does not fit shared memory",
                count=12,
            ),
        ),
        space={case.implementation: len(variants) + 12},
    )
    compiles = [_compile(case, variant, place) for place, variant in enumerate(variants)]
    verifies = [
        _verify(case, record.variant, place)
        for place, record in enumerate(compiles)
        if isinstance(record.result, Compiled)
    ]
    places = {variant.id: place for place, variant in enumerate(variants)}
    verifies = [
        _verify(case, record.variant, places[record.variant.id])
        for record in compiles
        if isinstance(record.result, Compiled)
    ]
    profiles = [
        _profile(case, record.variant, places[record.variant.id], random)
        for record in verifies
        if isinstance(record.result, Verified)
    ]
    write_atomic(output_path(root, "generate", keys["generate"], 0), to_json(generated))
    for stage, kind, records in (
        ("compile", CompileOutput, compiles),
        ("verify", VerifyOutput, verifies),
        ("profile", ProfileOutput, profiles),
    ):
        write_atomic(
            output_path(root, stage, keys[stage], 0),
            to_json(kind(key=keys[stage], round=0, records=tuple(records))),
        )
        for record in records:
            if isinstance(record.result, Failure) and record.result.log:
                write_atomic(
                    entry_path(root, stage, record.entry) / record.result.log,
                    f"{record.result.reason}\n".encode(),
                )
    write_atomic(spec_path(root, "compile", keys["compile"]), to_json(_compile_spec(case)))
    present = case.hardware == "cpu"
    return TaskRow(
        task=digest([name]),
        kernel=case.kernel,
        workload=case.workload,
        hardware=case.hardware,
        kind="cpu" if present else "hip" if case.hardware.startswith("mi") else "cuda",
        device_present=present,
        optimization="full",
        search="grid",
        rounds=1,
        dtype=case.dtype,
        dimensions=case.dimensions,
        flops=case.flops,
        bytes=case.bytes,
        unit=case.unit,
        peaks={
            name: Quantity(value=value, unit=unit, source="datasheet")
            for name, (value, unit) in PEAKS[case.hardware].items()
        },
        **keys,
    )


def _variant(case: Case, tunables: Configuration) -> Variant:
    return Variant(
        kernel=case.kernel,
        implementation=case.implementation,
        backend=case.implementation,
        source_digest=digest(case.kernel),
        attributes={},
        tunables=tunables,
    )


def _compile_spec(case: Case) -> CompileSpec:
    tunables = {name: Tunable(values=values, default=values[0]) for name, values in case.space.items()}
    implementation = Implementation(
        backend=case.implementation,
        source="x",
        entry="launch",
        tunables=tunables,
        origin="own",
        licence="Apache-2.0",
    )
    problem = Problem(
        kernel=case.kernel,
        dimensions=case.dimensions,
        tensors={},
        scalars={},
        attributes={},
        element=case.dtype,
    )
    target = Target(kind="cpu", architecture=ARCHITECTURES[case.hardware], limits={})
    return CompileSpec(
        parent="p",
        problem=problem,
        implementations={case.implementation: implementation},
        target=target,
        builds={},
    )


def _failure(case: Case, stage: str, place: int) -> Failure | None:
    found = case.failures.get(place)
    if found is None or found[0] != stage:
        return None
    return Failure(outcome=found[1], reason=found[2], log="log.txt")


def _entry(case: Case, stage: str, variant: Variant) -> str:
    return digest([stage, case.hardware, case.workload, variant.id])


def _compile(case: Case, variant: Variant, place: int) -> CompileRecord:
    return CompileRecord(
        variant=variant,
        entry=_entry(case, "compile", variant),
        seconds=0.2 + place % 7 / 50,
        provenance=PROVENANCE,
        result=_failure(case, "compile", place)
        or Compiled(
            artifact="kernel.so" if case.hardware == "cpu" else "kernel.cubin",
            artifact_digest="d",
            functions=("f",),
            facts=_facts(case, place),
            files=("kernel.so",),
        ),
    )


def _facts(case: Case, place: int) -> StaticFacts:
    if case.hardware == "cpu":
        return StaticFacts(
            code_bytes=2000 + 96 * place, instructions={"vector_fma": 12 * (place % 2), "load": 40 + place}
        )
    amd = case.hardware.startswith("mi")
    generation = list(PEAKS).index(case.hardware)
    registers = 32 + 8 * (place % 9) + 6 * generation + (90 if case.unit == "matrix" else 0)
    return StaticFacts(
        code_bytes=3000 + 128 * place + 200 * generation,
        registers=registers,
        scalar_registers=48 + generation if amd else None,
        spills=16 * (place % 3) if registers > 200 else 0,
        shared_memory=4096 * (place % 12 + 1) if case.unit == "matrix" else 64,
        threads_per_block=128,
        occupancy_bound=min(1.0, 64 / registers),
        occupancy_limiter="registers" if registers > 64 else "threads",
        instructions={
            "matrix": 16 + place if case.unit == "matrix" else 0,
            "load_global": 8,
            "store_global": 4,
        },
    )


def _verify(case: Case, variant: Variant, place: int) -> VerifyRecord:
    checks = tuple(
        CheckResult(check=name, cases=12, seconds=0.1) for name in ("values", "guards", "determinism")
    )
    return VerifyRecord(
        variant=variant,
        entry=_entry(case, "verify", variant),
        where="cpu" if case.hardware == "cpu" else "interpreter",
        result=_failure(case, "verify", place)
        or Verified(worst_share=0.02 + place / 200, worst_error=3e-7 * (1 + place), weak=case.weak),
        checks=checks,
        shapes=(case.dimensions, dict.fromkeys(case.dimensions, 1)),
        seeds=(11, 12),
        seconds=0.4,
        provenance=PROVENANCE,
    )


def _profile(case: Case, variant: Variant, place: int, random: np.random.Generator) -> ProfileRecord:
    result: Profiled | Failure
    if case.hardware != "cpu":
        result = Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason=f"no {case.hardware} on this machine")
    else:
        result = _failure(case, "profile", place) or _profiled(case, variant, random)
    return ProfileRecord(
        variant=variant,
        entry=_entry(case, "profile", variant),
        result=result,
        seconds=1.1,
        provenance=PROVENANCE,
    )


def _profiled(case: Case, variant: Variant, random: np.random.Generator) -> Profiled:
    best = max(case.bytes / CEILINGS.cache_bandwidth, case.flops / CEILINGS.matrix_flops) * 1.3
    slowdown = 1.0
    for name, value in variant.tunables.items():
        levels = case.space[name]
        slowdown *= 1 + 0.25 * (len(levels) - 1 - levels.index(value)) * (3 if name == "vectorize" else 0.4)
    timing = _timing(best * slowdown * random.normal(1, 0.01), random)
    comparisons = [_comparison("eager", timing, _timing(best * (case.eager or 1), random))]
    absent: tuple[AbsentBaseline, ...] = ()
    if case.workload == "awkward":
        absent = (
            AbsentBaseline(baseline="compile", reason="torch.compile failed: InductorError: no C++ compiler"),
        )
    else:
        comparisons.append(_comparison("compile", timing, _timing(best * (case.eager or 1) * 0.8, random)))
    roof = max(case.bytes / CEILINGS.cache_bandwidth, case.flops / CEILINGS.matrix_flops)
    return Profiled(
        timing=timing,
        comparisons=tuple(comparisons),
        absent=absent,
        ceilings=CEILINGS,
        flops=case.flops,
        bytes=case.bytes,
        roofline_share=roof / timing.median.value,
        bound="compute" if case.unit == "matrix" else "memory",
        device={"name": "Example CPU @ 2.90GHz", "threads": "2", "governor": "performance"},
    )


def _timing(seconds: float, random: np.random.Generator) -> Timing:
    samples = seconds * random.normal(1, 0.015, 40)
    median = float(np.median(samples))
    half = median * 0.006
    interval = ConfidenceInterval(value=median, low=median - half, high=median + half, confidence=0.95)
    return Timing(
        samples=tuple(samples.tolist()),
        median=interval,
        calls_per_batch=16,
        setup_seconds=0.01,
        first_call_seconds=seconds * 9,
    )


def _comparison(baseline: str, timing: Timing, other: Timing) -> Comparison:
    ratio = other.median.value / timing.median.value
    speedup = ConfidenceInterval(value=ratio, low=ratio * 0.985, high=ratio * 1.015, confidence=0.95)
    verdict = "faster" if speedup.low > 1 else "slower" if speedup.high < 1 else "indistinguishable"
    return Comparison(baseline=baseline, timing=other, speedup=speedup, verdict=verdict)
