"""Condenses the results of an experiment into its Summary record."""

import collections
from collections.abc import Sequence

from pipeline.analyze.collect import Result
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.provenance import Provenance
from pipeline.records.specs import AggregateSpec
from pipeline.records.summary import NotMeasured, Summary, TargetSeen, Winner


def summarize(
    spec: AggregateSpec,
    results: Sequence[Result],
    winners: tuple[Winner | NotMeasured, ...],
    *,
    tables: dict[str, str],
    provenance: Provenance,
) -> Summary:
    """Counts, winners, and with what and where the results were made."""
    made = [record.provenance for result in results for record in result.records.values()]
    measured = sorted(
        result.profile.provenance.created for result in results if result.profile and result.profiled and not result.profiled.recorded
    )
    versions: dict[str, set[str]] = collections.defaultdict(set)
    for provenance_of_result in made:
        for tool, version in provenance_of_result.toolchain.items():
            versions[tool].add(version)
    return Summary(
        experiment=spec.experiment,
        description=spec.description,
        provenance=provenance,
        tasks=len(spec.tasks),
        variants=len(results),
        stages=_stages(results),
        winners=winners,
        targets=_targets(spec, results),
        toolchain={tool: tuple(sorted(found)) for tool, found in sorted(versions.items())},
        commits=tuple(sorted({entry.git for entry in made if entry.git})),
        hosts=tuple(sorted({entry.host for entry in made})),
        origin=spec.origin,
        measured_from=measured[0] if measured else None,
        measured_to=measured[-1] if measured else None,
        tables=tables,
    )


def _stages(results: Sequence[Result]) -> dict[str, dict[Outcome, int]]:
    stages: dict[str, collections.Counter[Outcome]] = {
        "generate": collections.Counter({Outcome.PASSED: len(results)}),
        "compile": collections.Counter(),
        "verify": collections.Counter(),
        "profile": collections.Counter(),
    }
    for result in results:
        for stage, record in result.records.items():
            failure = record.result if isinstance(record.result, Failure) else None
            stages[stage][failure.outcome if failure else Outcome.PASSED] += 1
    return {stage: dict(counts) for stage, counts in stages.items()}


def _targets(spec: AggregateSpec, results: Sequence[Result]) -> tuple[TargetSeen, ...]:
    devices: dict[str, dict[str, str]] = {}
    for result in results:
        if result.profiled:
            found = devices.setdefault(result.task.hardware, result.profiled.device)
            # What differs between measurements (clock, load) is no fact of the device.
            same = {name: value for name, value in found.items() if result.profiled.device.get(name) == value}
            devices[result.task.hardware] = same
    tasks = {task.hardware: task for task in spec.tasks}
    return tuple(
        TargetSeen(
            hardware=name, kind=task.kind, device_present=task.device_present, device=devices.get(name, {})
        )
        for name, task in tasks.items()
    )
