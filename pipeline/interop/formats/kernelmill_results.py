"""Our own results, one space for each task and implementation. In: artifacts. Out: recorded spaces."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from pipeline.interop.formats.kernel_tuner_cache import with_values
from pipeline.performance.quantities import counted
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.results.collection import Collected, Result, collect
from pipeline.records.results.profiled import Profiled
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace


def own_results(spec: AggregateSpec, root: Path) -> Iterator[RecordedSpace]:
    """The measurements of each task and implementation of an experiment.

    Raises
    ------
    StoreError
        An output is missing or cannot be read: the experiment has not run to its end.
    """
    spaces = list(_spaces(spec, root))
    several = {name for name, count in Counter(each.source for _, each in spaces).items() if count > 1}
    for task, each in spaces:
        # Tasks of a sweep over tunables or searches have the same names.
        source = f"{each.source}-{task[:8]}" if each.source in several else each.source
        yield msgspec.structs.replace(each, source=source)


def _spaces(spec: AggregateSpec, root: Path) -> Iterator[tuple[str, RecordedSpace]]:
    """Task and space."""
    collected = collect(spec, root)
    made = [each for each in collected.results if each.task.recorded is None]  # what was replayed is not ours
    ordered = sorted(made, key=_group)
    for (task, implementation), several in groupby(ordered, key=_group):
        results = list(several)
        # T4 knows a configuration and no source: what a search wrote would pass for the declared one.
        declared = [each for each in results if not each.variant.written]
        if declared:
            yield task, _space(collected, implementation, declared, len(results) - len(declared))


def _group(result: Result) -> tuple[str, str]:
    return result.task.task, result.variant.implementation


def _space(
    collected: Collected, implementation: str, results: Sequence[Result], written: int
) -> RecordedSpace:
    task = results[0].task
    recorded = [found for each in results if (found := _recorded(each)) is not None]
    declared = collected.declared.get(task.generate)
    tunables = declared.implementations[implementation].tunables if declared else {}
    names = list(tunables) or list(results[0].variant.tunables)
    values, _ = with_values(
        {name: tunables[name].values if name in tunables else () for name in names},
        (each.tunables for each in recorded),
    )
    absent = len(results) - len(recorded)
    left_out = {
        "not measured, for example because the device is absent": absent,
        "with a source that a search wrote, for which T4 has no word": written,
    }
    devices = [each.profiled.device.get("name") for each in results if each.profiled]
    return RecordedSpace(
        source="-".join((task.kernel, implementation, task.workload, task.hardware, task.optimization)),
        format="T4",
        kernel=f"{task.kernel}.{implementation}",
        device=next((each for each in devices if each), task.hardware),
        problem=tuple((declared.problem.dimensions if declared else task.dimensions).values()),
        unit="seconds",
        tunables=values,
        defaults={name: tunable.default for name, tunable in tunables.items()},
        constraints=declared.implementations[implementation].constraints if declared else (),
        results=tuple(recorded),
        notes=tuple(
            f"left out: {counted(count, 'variant')} {what}" for what, count in left_out.items() if count
        ),
    )


def _recorded(result: Result) -> RecordedResult | None:
    """None for a variant that was not measured, or only briefly: nothing is known about it."""
    last = list(result.records.values())
    common = RecordedResult(
        tunables=result.variant.tunables,
        outcome=Outcome.PASSED,
        compile_seconds=result.compile.seconds if result.compile else None,
        verify_seconds=result.verify.seconds if result.verify else None,
        benchmark_seconds=result.profile.seconds if result.profile else None,
        timestamp=last[-1].provenance.created if last else None,
    )
    if result.profiled is not None:
        return _measured(common, result.profiled)
    if result.failure is None or result.outcome in (
        *(Outcome.DEVICE_UNAVAILABLE, Outcome.NOT_JUDGED, Outcome.NOT_RECORDED, Outcome.SCREENED),
    ):
        return None
    return msgspec.structs.replace(common, outcome=result.outcome, reason=result.failure.reason)


def _measured(common: RecordedResult, profiled: Profiled) -> RecordedResult:
    seconds = profiled.time.value
    return msgspec.structs.replace(
        common,
        samples=tuple(sample / profiled.drift for sample in profiled.timing.samples),
        seconds=seconds,
        median_seconds=seconds,
        joules=profiled.energy.joules if profiled.energy else None,
        measurements={
            name: amount / seconds / 1e9
            for name, amount in (("GFLOP/s", profiled.flops), ("GB/s", profiled.bytes))
            if amount is not None
        },
    )
