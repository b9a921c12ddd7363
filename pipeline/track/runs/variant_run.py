"""Lays a variant's results out as one flat MLflow run: Result in, Run (params, metrics, tags, files) out.

A run of the main experiment is a measured variant, always. What was only compiled, because its device is
absent, goes to an experiment of its own: its registers can be compared across targets there, it can never be
taken for a measurement, and it does not push the measured runs off the UI's first page of a hundred.
"""

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.performance.bound.of_result import ceiling_bound, declared_bound
from pipeline.performance.diagnosis import diagnose
from pipeline.records.attempt import Attempt
from pipeline.records.kernel import TunableValue
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Outcome
from pipeline.records.profiled import Profiled
from pipeline.records.record import Record, digest, digest_bytes, digest_parts
from pipeline.records.results import Result
from pipeline.store.sources import root_of
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.task_specs import Task

SOURCES = frozenset({".py", ".cpp", ".cu", ".c", ".hpp", ".h"})
"""Of the files that compile keeps; disassembly and intermediate forms stay in the store."""

LAYOUT = 3
"""Raise it when what is written here changes: runs are then logged again, traceably."""


class Run(Record, frozen=True, kw_only=True):
    """One MLflow run, before it is written."""

    slot: str
    """What is measured: the task's names, the variant, the device and the versions of the tools."""
    result: str
    """Digest of what was found; equal results in one slot are one run."""
    name: str
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    files: tuple[tuple[Path, str], ...]
    """File and the folder among the artifacts that it goes to."""
    record: Result
    """Becomes result.json: all records, whole."""
    started: int
    """Milliseconds since the epoch: when it was measured, not when it was logged."""
    ended: int


def is_measured(result: Result) -> bool:
    """Whether it is a run of the main experiment."""
    return result.profiled is not None


def is_only_compiled(result: Result) -> bool:
    """Whether it compiled for an absent device; a variant that failed a check is a failure, not this."""
    absent = result.outcome in {Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE}
    return result.compiled is not None and result.profiled is None and absent


def run_of(result: Result, task: Task, root: Path) -> Run:
    """The run of a variant that was measured or only compiled."""
    assert result.compile is not None and result.compiled is not None
    last = list(result.records.values())[-1]
    ended = datetime.datetime.fromisoformat(last.provenance.created).timestamp()
    found = [record.result for record in result.records.values()]
    return Run(
        slot=_slot(result, task),
        result=digest([LAYOUT, found]),
        name=_name(result),
        params={
            mlflow_names.key(name): mlflow_names.param(value)
            for name, value in result.variant.tunables.items()
        },
        metrics={mlflow_names.key(name): value for name, value in _metrics(result) if value is not None},
        tags={mlflow_names.key(name): mlflow_names.tag(value) for name, value in _tags(result, task).items()},
        files=tuple(_files(result, task, root)),
        record=result,
        started=round((ended - last.seconds) * 1000),
        ended=round(ended * 1000),
    )


def toolchain(result: Result) -> dict[str, str]:
    """Versions of all that made the result; stages that were made with different ones show both."""
    found: dict[str, dict[str, None]] = {}
    for record in result.records.values():
        for tool, version in record.provenance.toolchain.items():
            found.setdefault(tool, {})[version] = None
    return {tool: "|".join(versions) for tool, versions in sorted(found.items())}


def _slot(result: Result, task: Task) -> str:
    row = task.row
    where = [row.kernel, row.workload, row.hardware, row.optimization]
    return digest([where, result.id, task.device, toolchain(result), is_measured(result)])


def _name(result: Result) -> str:
    row = result.task
    return f"{result.variant.implementation} {result.id[:6]} {row.kernel} {row.workload} {row.hardware}"


def _metrics(result: Result) -> Iterator[tuple[str, float | None]]:
    if result.profiled:
        yield from _times(result.profiled)
    if result.verified:
        yield "check/error_share", result.verified.worst_share
    if result.compiled and result.compile:
        facts = result.compiled.facts
        yield "static/registers", mlflow_names.number(facts.registers)
        yield "static/spills", mlflow_names.number(facts.spills)
        yield "static/shared_memory", mlflow_names.number(facts.shared_memory)
        yield "static/code_bytes", mlflow_names.number(facts.code_bytes)
        yield "static/compile_seconds", mlflow_names.number(result.compile.seconds)
        yield "estimate/occupancy", mlflow_names.number(facts.occupancy_bound)
        bound = ceiling_bound(result) or declared_bound(result)
        yield "estimate/least_us", mlflow_names.number(bound.seconds * 1e6) if bound else None
    yield "search/round", float(result.round)
    if result.attempt:
        yield "agent/prompt_tokens", mlflow_names.number(result.attempt.prompt_tokens)
        yield "agent/completion_tokens", mlflow_names.number(result.attempt.completion_tokens)
        yield "agent/cost", mlflow_names.number(result.attempt.cost)
        yield "agent/seconds", mlflow_names.number(result.attempt.seconds)
    for name, value in result.variant.tunables.items():
        yield f"tunable/{name}", mlflow_names.number(value)


def _times(profiled: Profiled) -> Iterator[tuple[str, float | None]]:
    timing = profiled.timing
    for comparison in profiled.comparisons:
        speedup = comparison.speedup
        yield f"speedup/{comparison.baseline}", mlflow_names.number(speedup.value)
        yield f"speedup/{comparison.baseline}_low", mlflow_names.number(speedup.low)
        yield f"speedup/{comparison.baseline}_high", mlflow_names.number(speedup.high)
        yield f"speedup/{comparison.baseline}_detectable", mlflow_names.number(comparison.minimum_detectable)
    yield "time/median_us", mlflow_names.number(timing.median.value * 1e6)
    yield "time/low_us", mlflow_names.number(timing.median.low * 1e6)
    yield "time/high_us", mlflow_names.number(timing.median.high * 1e6)
    if profiled.recorded is None:
        yield "time/processes", float(len(timing.processes) or 1)
    if timing.first_call_seconds is not None:
        yield "time/first_call_us", mlflow_names.number(timing.first_call_seconds * 1e6)
    if timing.setup_seconds is not None:
        yield "time/setup_us", mlflow_names.number(timing.setup_seconds * 1e6)
    yield "time/p95_us", mlflow_names.number(timing.quantile(0.95) * 1e6)
    if timing.host_seconds is not None:
        yield "time/host_us", mlflow_names.number(timing.host_seconds * 1e6)
    yield "roofline_share", mlflow_names.number(profiled.roofline_share)
    if profiled.bytes is not None:
        yield "achieved/gigabytes_per_second", mlflow_names.number(profiled.bytes / timing.median.value / 1e9)
    if profiled.flops is not None:
        yield "achieved/gigaflops_per_second", mlflow_names.number(profiled.flops / timing.median.value / 1e9)
    yield from _cost(profiled)


def _cost(profiled: Profiled) -> Iterator[tuple[str, float | None]]:
    """Beside time: energy, memory, clock, counters; only what was measured."""
    if profiled.energy is not None:
        energy = profiled.energy
        yield "energy_joules", mlflow_names.number(energy.joules)
        yield "energy/mean_watts", mlflow_names.number(energy.watts)
        yield "energy/delay_js", mlflow_names.number(energy.joules * profiled.timing.median.value)
    if profiled.memory is not None:
        yield "memory/device_bytes", mlflow_names.number(profiled.memory.steady.device_bytes)
        yield "memory/host_bytes", mlflow_names.number(profiled.memory.steady.host_bytes)
    if profiled.conditions is not None:
        seen = profiled.conditions
        yield "device/clock_mhz_low", mlflow_names.number(seen.clock_mhz_low)
        yield "device/clock_mhz_high", mlflow_names.number(seen.clock_mhz_high)
        yield "device/temperature_celsius", mlflow_names.number(seen.temperature_celsius)
    if profiled.counters is not None:
        for name, value in profiled.counters.values.items():
            yield f"counter/{name.removesuffix(':u')}", mlflow_names.number(value)


def _tags(result: Result, task: Task) -> dict[str, str]:
    row, variant = result.task, result.variant
    tags = {
        "kernel": row.kernel,
        "workload": row.workload,
        "hardware": row.hardware,
        "optimization": row.optimization,
        "dtype": row.dtype,
        "implementation": variant.implementation,
        "dimensions": _pairs(row.dimensions),
        "task": row.task,
        "variant": result.id,
        "source": variant.source_digest,
        "overrides": task.overrides,
        "device": result.profiled.device.get("name", "unnamed") if result.profiled else "absent",
        "versions": _pairs(toolchain(result)),
        "status": _status(result),
    }
    if result.default is not None:
        tags["default"] = mlflow_names.param(result.default)
    if result.source:
        author = result.source.author
        tags["written_by"] = f"{author.writer}: {author.name}"
        tags |= {"parents": " ".join(result.source.parents)} if result.source.parents else {}
        tags |= {f"author/{key}": value for key, value in author.details.items()}
    if variant.attributes:
        tags["attributes"] = _pairs(variant.attributes)
    if result.verify and result.verified:
        tags["verified_on"] = result.verify.where
        tags["seeds"] = " ".join(str(seed) for seed in result.verify.seeds)
        if result.verified.weak:
            tags["weak_check"] = " ".join(result.verified.weak)
    if result.profiled:
        tags |= {"bound": result.profiled.bound} if result.profiled.bound else {}
        tags |= {"recorded": result.profiled.recorded} if result.profiled.recorded else {}
        if result.profiled.conditions and result.profiled.conditions.throttled:
            tags["throttled"] = ", ".join(result.profiled.conditions.throttled)
        if result.profiled.ceilings and result.profiled.ceilings.level:
            tags["memory_level"] = result.profiled.ceilings.level
        for comparison in result.profiled.comparisons:
            tags[f"verdict/{comparison.baseline}"] = comparison.verdict
    tags |= _agent_tags(result.attempt)
    codes = dict.fromkeys(str(finding.code) for finding in diagnose(result, task.generate))
    if codes:
        tags["diagnosis"] = " ".join(codes)
    if result.origin:
        tags |= {"origin": result.origin.line, "bundle": result.origin.bundle}
        tags["environment"] = _pairs(result.origin.environment)
    git = [record.provenance.git for record in result.records.values() if record.provenance.git]
    if git:
        tags["mlflow.source.git.commit"] = git[-1]
    return tags


def _status(result: Result) -> str:
    """`recorded`: measured by somebody else, and replayed."""
    if result.profiled is None:
        return "compiled_only"
    return "recorded" if result.profiled.recorded else "measured"


def _agent_tags(attempt: Attempt | None) -> dict[str, str]:
    """Who wrote the source and for what change, where a language model did."""
    if attempt is None:
        return {}
    told = {"model": attempt.model, "template": attempt.prompt, "change": attempt.change}
    return {f"agent/{name}": value for name, value in told.items() if value}


def _files(result: Result, task: Task, root: Path) -> Iterator[tuple[Path, str]]:
    """The binary, and the sources that it was made of."""
    assert result.compile is not None and result.compiled is not None
    folder = entry_path(root, "compile", result.compile.entry)
    compiled = result.compiled
    sources = [name for name in compiled.files if Path(name).suffix in SOURCES]
    for name in (compiled.artifact, *sources):
        yield folder / name, (Path("kernel") / name).parent.as_posix()
    if result.attempt:
        yield from _answers(result.attempt, root)
    if result.variant.written:
        yield from _written(result, root)
    elif not sources and task.compile and result.task.recorded is None:
        path = Path(task.compile.implementations[result.variant.implementation].source)
        if _is_source_of(result, path):
            yield path, (Path("kernel/sources") / path).parent.as_posix()


def _answers(attempt: Attempt, root: Path) -> Iterator[tuple[Path, str]]:
    """Prompts and answers of a language model, in the order in which they were asked."""
    for number, asked in enumerate(attempt.asked):
        folder = entry_path(root, "answers", asked.entry)
        for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
            yield path, f"agent/{number}_{asked.role}"


def _written(result: Result, root: Path) -> Iterator[tuple[Path, str]]:
    """What somebody wrote, beside what the compiler may have kept of it."""
    folder = root_of(result.variant, root)
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file():
            yield path, (Path("kernel/written") / path.relative_to(folder)).parent.as_posix()


def _is_source_of(result: Result, path: Path) -> bool:
    """Whether the repository's file is, still and alone, what the variant was compiled from."""
    if not path.is_file():
        return False
    digests = {path.as_posix(): digest_bytes(path.read_bytes())}
    return digest_parts(digests) == result.variant.source_digest


def _pairs(values: Mapping[str, TunableValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
