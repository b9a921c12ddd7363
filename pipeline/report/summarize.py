"""Condenses the results of an experiment: results in, what a part counts to, and its Summary record out."""

import collections
from collections.abc import Iterable, Sequence

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record
from pipeline.records.results.aggregated import NotMeasured, Summary, TargetSeen, Winner
from pipeline.records.results.collection import Result


class ResultCounts(Record, frozen=True, kw_only=True):
    """Some of an experiment's results as the summary counts them; several add up."""

    variants: int
    stages: dict[str, dict[Outcome, int]]
    devices: dict[str, dict[str, str]]
    """Hardware on which something was measured -> what its measurements found alike."""
    toolchain: dict[str, tuple[str, ...]]
    commits: tuple[str, ...]
    hosts: tuple[str, ...]
    measured_from: str | None
    measured_to: str | None


def tally(results: Sequence[Result]) -> ResultCounts:
    """What results count to."""
    made = [record.provenance for result in results for record in result.records.values()]
    measured = [
        result.profile.provenance.created
        for result in results
        if result.profile and result.profiled and result.profiled.recorded is None
    ]
    return ResultCounts(
        variants=len(results),
        stages=_stages(results),
        devices=_alike(
            (result.task.hardware, result.profiled.device) for result in results if result.profiled
        ),
        toolchain=_versions(
            (tool, (version,)) for entry in made for tool, version in entry.toolchain.items()
        ),
        commits=tuple(sorted({entry.git for entry in made if entry.git})),
        hosts=tuple(sorted({entry.host for entry in made})),
        measured_from=min(measured, default=None),
        measured_to=max(measured, default=None),
    )


def summarize(
    spec: AggregateSpec,
    tallies: Sequence[ResultCounts],
    winners: tuple[Winner | NotMeasured, ...],
    *,
    tables: dict[str, str],
    provenance: Provenance,
) -> Summary:
    """Counts, winners, and with what and where the results were made."""
    seen = _alike(pair for part in tallies for pair in part.devices.items())
    targets = {task.hardware: task for task in spec.tasks}
    return Summary(
        experiment=spec.experiment,
        description=spec.description,
        provenance=provenance,
        tasks=len(spec.tasks),
        variants=sum(part.variants for part in tallies),
        stages=_add_up(part.stages for part in tallies),
        winners=winners,
        targets=tuple(
            TargetSeen(
                hardware=name, kind=task.kind, device_present=task.device_present, device=seen.get(name, {})
            )
            for name, task in targets.items()
        ),
        toolchain=_versions(pair for part in tallies for pair in part.toolchain.items()),
        commits=tuple(sorted({commit for part in tallies for commit in part.commits})),
        hosts=tuple(sorted({host for part in tallies for host in part.hosts})),
        origin=spec.origin,
        measured_from=min((part.measured_from for part in tallies if part.measured_from), default=None),
        measured_to=max((part.measured_to for part in tallies if part.measured_to), default=None),
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


def _add_up(parts: Iterable[dict[str, dict[Outcome, int]]]) -> dict[str, dict[Outcome, int]]:
    total: dict[str, collections.Counter[Outcome]] = collections.defaultdict(collections.Counter)
    for part in (_stages(()), *parts):
        for stage, counts in part.items():
            total[stage].update(counts)
    return {stage: dict(counts) for stage, counts in total.items()}


def _versions(found: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    versions: dict[str, set[str]] = collections.defaultdict(set)
    for tool, several in found:
        versions[tool].update(several)
    return {tool: tuple(sorted(several)) for tool, several in sorted(versions.items())}


def _alike(found: Iterable[tuple[str, dict[str, str]]]) -> dict[str, dict[str, str]]:
    """What differs between measurements (clock, load) is no fact of the device."""
    devices: dict[str, dict[str, str]] = {}
    for hardware, facts in found:
        known = devices.setdefault(hardware, facts)
        devices[hardware] = {name: value for name, value in known.items() if facts.get(name) == value}
    return devices
