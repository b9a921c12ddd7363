"""The summary of an experiment: results in, its record out, and the winners as a table for a terminal."""

import collections
from collections.abc import Iterable, Sequence

from pipeline.backends.devices.device_registry import device_kinds
from pipeline.performance.quantities import SIGNS_MEAN, counted, interval, seconds, share, speedup
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record
from pipeline.records.results.aggregated import NotMeasured, Summary, TargetSeen, Winner
from pipeline.records.results.collection import Result
from pipeline.report.winner_selection import mean_speedups


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


WIDTH = 118
NAME_WIDTH = 18  # three names, two intervals and a time then fit the width
LARGE_SPEEDUP = 10  # of a baseline that is itself far from the roofline: the figure says more about that
_NAMES = ("kernel", "workload", "hardware")


def summary_text(summary: Summary) -> str:
    """Counts, winners, and what could not be measured, in plain text."""
    measured = [winner for winner in summary.winners if isinstance(winner, Winner)]
    missing = [winner for winner in summary.winners if isinstance(winner, NotMeasured)]
    parts = [_counts(summary)]
    if measured:
        parts.append("\n".join(_measured_table(measured)))
    if missing:
        parts.append("\n".join(_missing_table(missing)))
    return "\n\n".join(parts) + "\n"


def _counts(summary: Summary) -> str:
    done = {stage: counts.get("passed", 0) for stage, counts in _plain(summary).items()}
    where = f"\nmade on {summary.origin.line}" if summary.origin else ""
    where += "".join(
        f"\nrecorded measurements, not made here: {line}"
        for line in dict.fromkeys(
            each.recorded for each in summary.winners if isinstance(each, Winner) and each.recorded
        )
    )
    return (
        f"{summary.experiment}: {counted(summary.tasks, 'task')}, {counted(summary.variants, 'variant')} · "
        f"{done.get('compile', 0):,} compiled, {done.get('verify', 0):,} verified, "
        f"{done.get('profile', 0):,} measured{where}"
    )


def _plain(summary: Summary) -> dict[str, dict[str, int]]:
    return {
        stage: {str(outcome): count for outcome, count in counts.items()}
        for stage, counts in summary.stages.items()
    }


def _measured_table(winners: Sequence[Winner]) -> list[str]:
    names = list(dict.fromkeys(entry.baseline for winner in winners for entry in winner.compared))
    heading = [*_NAMES, "time", *(f"vs {name}" for name in names), "roofline"]
    rows = [_measured_row(winner, names) for winner in winners]
    lines = _aligned([heading, *rows], right=range(3, len(heading)))
    body = _interleaved(lines[2:], [_note(winner) for winner in winners])
    editing = dict.fromkeys(winner.preset for winner in winners if winner.editing_only)
    notes = [
        f"verify={preset} is for editing: it registers no winners (verify=standard does)"
        for preset in editing
    ]
    return [*lines[:2], *body, SIGNS_MEAN, *notes, *_means(winners), *_slow_baselines(winners)]


def _means(winners: Sequence[Winner]) -> list[str]:
    """Where a kernel was measured on many workloads: all of them in one figure for each baseline."""
    return [
        _cut(
            f"{_name(each.kernel)} {_name(each.hardware)} {each.dtype}: over {each.workloads} workloads vs "
            f"{each.baseline} {interval(each.speedup)}, {each.faster} faster, {each.slower} slower"
        )
        for each in mean_speedups(winners)
    ]


def _slow_baselines(winners: Sequence[Winner]) -> list[str]:
    """How far from the roofline the baselines of large speed-ups are themselves."""
    lines = []
    for winner in winners:
        large = {each.baseline for each in winner.compared if each.speedup.value >= LARGE_SPEEDUP}
        slow = [f"{name} {share(value)}" for name, value in winner.baseline_shares.items() if name in large]
        if slow:
            cell = f"{_name(winner.cell.kernel)} {_name(winner.cell.workload)} {_name(winner.cell.hardware)}"
            reason = "slow baselines, which reach little of the roofline"
            lines.append(_cut(f"{cell}: {reason}: {', '.join(slow)}"))
    return lines


def _measured_row(winner: Winner, names: Sequence[str]) -> list[str]:
    compared = {entry.baseline: entry for entry in winner.compared}
    cell = winner.cell
    row = [_name(cell.kernel), _name(cell.workload), _name(cell.hardware), seconds(winner.seconds.value)]
    for name in names:
        entry = compared.get(name)
        row.append("absent" if entry is None else speedup(entry.speedup, entry.verdict))
    return [*row, "–" if winner.roofline_share is None else share(winner.roofline_share)]


def _note(winner: Winner) -> str:
    tail = f" · {winner.measured} of {counted(winner.variants, 'variant')} measured"
    if winner.tied:
        tail += f", {winner.tied} tied"
    if winner.preset:
        tail += f", verify={winner.preset}"
    if winner.weak:
        tail += f", WEAK CHECK: {' '.join(winner.weak)} would pass"
    tunables = " ".join(f"{name}={value}" for name, value in winner.tunables.items())
    by = f" ({winner.written_by})" if winner.written_by else ""
    return _cut(f"  {winner.implementation}{by}: {tunables or 'no tunables'}", WIDTH - len(tail)) + tail


def _missing_table(winners: Sequence[NotMeasured]) -> list[str]:
    """Targets that share kernel, workload and reason share a row."""
    groups: dict[tuple[str, str, str, str], list[NotMeasured]] = {}
    for winner in winners:
        place = "" if winner.where is None or winner.where in device_kinds() else winner.where
        key = (winner.cell.kernel, winner.cell.workload, winner.reason, place)
        groups.setdefault(key, []).append(winner)
    rows, notes = [], []
    for (kernel, workload, reason, place), group in groups.items():
        compiled, proposed = sum(cell.compiled for cell in group), sum(cell.variants for cell in group)
        verified = f"{sum(cell.verified for cell in group)}{f' in {place}' if place else ''}"
        rows.append([_name(kernel), _name(workload), reason, f"{compiled}/{proposed}", verified])
        notes.append(_cut(f"  {' '.join(cell.cell.hardware for cell in group)}"))
    lines = _aligned([["kernel", "workload", "not measured", "compiled", "verified"], *rows], right=())
    return [*lines[:2], *_interleaved(lines[2:], notes)]


def _interleaved(lines: Sequence[str], notes: Sequence[str]) -> list[str]:
    return [line for pair in zip(lines, notes, strict=True) for line in pair]


def _aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(widths[place]) if place in right else cell.ljust(widths[place])
            for place, cell in enumerate(row)
        ]
        lines.append(_cut("  ".join(cells).rstrip()))
    return [lines[0], "-" * min(WIDTH, sum(widths) + 2 * len(widths) - 2), *lines[1:]]


def _name(name: str) -> str:
    """Cut to its column; of `workload[tokens=4]` the part that distinguishes it from its neighbours stays."""
    base, bracket, label = name.partition("[")
    if len(name) <= NAME_WIDTH or not bracket:
        return _cut(name, NAME_WIDTH)
    values = ",".join(each.partition("=")[2] or each for each in label.split())
    for text in (label, values):
        short = _cut(base, max(4, NAME_WIDTH - len(text) - 1)) + bracket + text
        if len(short) <= NAME_WIDTH:
            return short
    # Of long values the ends differ: those of files, in a sweep over recorded measurements.
    return f"…{name[1 - NAME_WIDTH :]}"


def _cut(line: str, width: int = WIDTH) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
