"""Search spaces in words: files of other tools or overrides in, lines out; and our results as T4 files."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.interop.formats.format_registry import combined, read_recorded
from pipeline.records.errors import (
    ConfigError,
    FormatError,
    FormulaError,
    StoreError,
    one_line,
)
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import AggregateSpec, GenerateSpec
from pipeline.records.record import read_record
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.search.spaces.search_space import Subspace, recorded_space, space_of

ROOT = Path("artifacts")
WIDTH = 13  # of the first column


def describe(what: Sequence[str]) -> Iterator[str]:
    """The points of each space, how many are valid, what the rules exclude, and what was measured there.

    Raises
    ------
    ConfigError
        Files and overrides are mixed.
    FormatError
        A file is of no known format.
    """
    overrides = [each for each in what if "=" in each and not Path(each).exists()]
    if overrides and len(overrides) < len(what):
        raise ConfigError(f"expected files or overrides, got both: {' '.join(what)}")
    lines = _ours(tuple(overrides)) if overrides else _files([Path(each) for each in what])
    return map(one_line, lines)


def _files(paths: Sequence[Path]) -> Iterator[str]:
    spaces = [read_recorded(path) for path in paths]
    for path, space in zip(paths, spaces, strict=True):
        try:
            yield from _recorded(space)
        except FormulaError as error:
            raise FormatError(f"{path}: ConfigurationSpace.Conditions: {error}") from None
        yield ""
    described = [space for space in spaces if space.constraints]
    for one in described:
        for other in spaces:
            if other.results:
                yield from _coverage(combined(one, other))


def _recorded(space: RecordedSpace) -> Iterator[str]:
    parts = [space.source, space.format, space.kernel, space.device]
    yield " · ".join(part for part in parts if part)
    if space.problem:
        yield _line("problem", " x ".join(f"{size:,}" for size in space.problem))
    counted = recorded_space(space)
    yield from _tunables(counted)
    if space.format == "T1":
        yield from _counts(counted)
    else:
        yield _line("product", f"{counted.size:,} (of the values that the file has; it says no conditions)")
    if space.results:
        yield from _results(space)
    for note in space.notes:
        yield _line("note", note)


def _tunables(space: Subspace) -> Iterator[str]:
    for number, (name, values) in enumerate(space.values.items()):
        listed = ", ".join(str(value) for value in values)
        short = listed if len(listed) <= 60 else f"{listed[:59]}…"
        yield _line("" if number else "tunables", f"{name}: {len(values)} ({short})")


def _counts(space: Subspace) -> Iterator[str]:
    yield _line("product", f"{space.size:,}")
    started = time.perf_counter()
    if space.solver.wide:
        yield _line("wide", "rules over too many tunables: every point is visited, which may take long")
    yield _line("valid", f"{space.count:,} (counted in {time.perf_counter() - started:.2f} s)")
    excluded = {(each.rule, each.reason): each.count for each in space.pruned()}
    if space.constraints:
        yield _line("rules", "with the points that each excludes, of those that the rules above it leave")
    for rule in space.constraints:
        count = excluded.get((rule.rule, rule.reason), 0)
        reason = "" if rule.reason.startswith("condition ") else f"  ({rule.reason})"
        shown = "not counted" if count is None else f"{count:,}"
        yield _line("", f"{shown:>11}  {rule.rule}{reason}")


def _results(space: RecordedSpace) -> Iterator[str]:
    counts = Counter(result.outcome.value for result in space.results)
    ended = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common())
    yield _line("results", f"{len(space.results):,}: {ended}")
    passed = [result for result in space.results if result.outcome is Outcome.PASSED]
    timed = [result for result in passed if result.seconds is not None]
    if (
        space.objective != "time"
        and all(space.objective in result.measurements for result in passed)
        and passed
    ):
        yield from _best_by(space.objective, passed)
    elif timed:
        best = min(timed, key=lambda result: result.seconds or 0.0)
        median = f", median of its samples {_time(best.median_seconds)}" if best.samples else ""
        yield _line("best", f"{_time(best.seconds)}{median}: {_point(best)}")
    costs = sum(result.cost_seconds for result in space.results)
    if costs:
        yield _line("cost", f"{costs / 3600:,.2f} h to compile and measure all of it, as recorded")


def _best_by(objective: str, passed: Sequence[RecordedResult]) -> Iterator[str]:
    ordered = sorted(passed, key=lambda result: result.measurements[objective])
    for name, result in (("lowest", ordered[0]), ("highest", ordered[-1])):
        yield _line(name, f"{objective} {result.measurements[objective]:g}: {_point(result)}")


def _coverage(space: RecordedSpace) -> Iterator[str]:
    """How many of the valid points have a result, and whether a result has no valid point."""
    subspace = recorded_space(space)
    inside = sum(subspace.contains(result.tunables) for result in space.results)
    different = len({tuple(sorted(result.tunables.items())) for result in space.results})
    yield f"{space.source}: {inside:,} of {subspace.count:,} valid points have a result"
    if inside < len(space.results):
        yield f"{len(space.results) - inside:,} results are of points that the conditions exclude"
    if different < len(space.results):
        yield f"{len(space.results) - different:,} results are of a point that had one already"


def _ours(overrides: tuple[str, ...]) -> Iterator[str]:
    from pipeline.plan.plan_cache import current_plan

    plan = current_plan(overrides, root=Path.cwd(), store=ROOT)
    for task in plan.tasks:
        row = task.row
        spec = read_record(spec_path(ROOT, "generate", row.generate), GenerateSpec)
        for space in space_of(spec).subspaces:
            names = (f"{row.kernel}.{space.implementation}", row.workload, row.hardware, row.optimization)
            yield " · ".join(names)
            yield from _tunables(space)
            yield from _counts(space)
            yield ""
    yield from (f"left out: {cell}" for cell in plan.pruned)


def export_results(root: Path, out: Path, experiment: str | None) -> Iterator[str]:
    """Write the results of finished experiments as T4 files; one of this name or key, or all."""
    from pipeline.interop.formats.kernelmill_results import own_results
    from pipeline.interop.formats.t4 import write_t4
    from pipeline.performance.quantities import counted

    written = 0
    for key in _finished(root, experiment):
        spec = read_record(spec_path(root, "aggregate", key), AggregateSpec)
        try:
            spaces = list(own_results(spec, root))
        except StoreError as error:
            if experiment is not None:
                raise
            yield f"left out: {key}: {error}"  # results of an older version, or removed since
            continue
        for space in spaces:
            if not space.results:  # a file without results is of no use
                yield f"no file: {key}/{space.source}: {'; '.join(space.notes)}"
                continue
            path = out / key / f"{space.source}_T4.json"
            write_t4(space, path)
            written += 1
            yield "; ".join((f"{path}: {counted(len(space.results), 'result')}", *space.notes))
    if not written:
        raise ConfigError(f"{root}: no results of an experiment that ran to its end")


def _finished(root: Path, experiment: str | None) -> list[str]:
    """Keys of the experiments whose tables are there, by name."""
    keys = sorted(path.parent.name for path in root.glob("aggregate/*/summary.json"))
    known = [key for key in keys if spec_path(root, "aggregate", key).is_file()]
    chosen = [key for key in known if experiment in (None, key, key.rpartition("-")[0])]
    if experiment is not None and not chosen:
        raise ConfigError(
            f"{root}: no finished experiment '{experiment}' (known: {', '.join(known) or 'none'})"
        )
    return chosen


def _line(name: str, text: str) -> str:
    return f"  {name:<{WIDTH}}{text}".rstrip()


def _point(result: RecordedResult) -> str:
    return " ".join(f"{name}={value}" for name, value in result.tunables.items())


def _time(seconds: float | None) -> str:
    return "absent" if seconds is None else f"{seconds * 1e3:.5f} ms"
