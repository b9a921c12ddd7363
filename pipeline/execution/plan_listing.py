"""What would run: overrides in, lines out: tasks with their variants, and what is pruned and why.

Nothing is executed.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pipeline.execution.run_results import aligned
from pipeline.performance.quantities import counted
from pipeline.plan.cluster_nodes import read_nodes
from pipeline.plan.plan_cache import current_plan, specs_store
from pipeline.records.layout import STAGES, output_path, spec_path
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.variant import Generated
from pipeline.stages.generate import generate

ROOT = Path("artifacts")


class PlanListing(Record, frozen=True, kw_only=True):
    """A plan with the first round of its variants."""

    plan: Plan
    generated: dict[str, Generated]
    """By key of generate."""


View = Literal["summary", "variants", "paths", "json"]


def lines(overrides: Sequence[str], view: View) -> list[str]:
    """The plan of these overrides, one line after the other."""
    with specs_store(ROOT) as store:
        plan = current_plan(tuple(overrides), root=Path.cwd(), store=store)
        if view == "paths":
            return list(_paths(plan))
        listing = PlanListing(plan=plan, generated=_generated(plan, store))
    if view == "json":
        return [to_json(listing).decode()]
    if view == "variants":
        return list(_variants(listing))
    chosen = any(each.startswith("optimization=") for each in overrides)
    return [*_summary(listing), *([] if chosen else _competing(plan))]


def _generated(plan: Plan, store: Path) -> dict[str, Generated]:
    """What generate will propose in the first round."""
    found = {}
    for key in dict.fromkeys(task.row.generate for task in plan.tasks):
        spec = read_record(spec_path(store, "generate", key), GenerateSpec)
        found[key] = generate(spec, [], key=key, round_number=0)
    return found


def _summary(listing: PlanListing) -> Iterator[str]:
    plan, nodes = listing.plan, read_nodes(ROOT)
    heading = ("kernel", "workload", "hardware", "optimization", "dtype", "variants", "space", "runs on")
    yield from aligned([heading, *(_row(task, listing, nodes) for task in plan.tasks)], indent=0)
    yield ""
    points = _pruned_points(listing)
    if points:
        yield "Points left out by constraints (each rule counts what the rules before it left):"
        yield from aligned([(f"{count:,}", *names) for names, count in points.items()])
        yield ""
    if plan.pruned:
        yield "Cells left out:"
        yield from (f"  {cell}" for cell in plan.pruned)
        yield ""
    variants = sum(len(listing.generated[task.row.generate].variants) for task in plan.tasks)
    rounds = max(task.row.rounds for task in plan.tasks)
    first = f" in the first of {rounds} rounds" if rounds > 1 else ""
    left_out = f", {len(plan.pruned)} cells left out" if plan.pruned else ""
    yield f"{plan.experiment}: {counted(len(plan.tasks), 'task')}, {variants:,} variants{first}{left_out}"


def _competing(plan: Plan) -> Iterator[str]:
    """Why there is more than one task for what overrides name."""
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for row in (task.row for task in plan.tasks):
        found.setdefault((row.kernel, row.workload, row.hardware), {})[row.optimization] = None
    names = dict.fromkeys(name for several in found.values() if len(several) > 1 for name in several)
    if names:
        several = f"{plan.experiment} has several optimizations ({', '.join(names)})"
        yield f"{several}: optimization=NAME chooses one"


def _row(task: PlannedTask, listing: PlanListing, nodes: Container[str]) -> tuple[str, ...]:
    row, generated = task.row, listing.generated[task.row.generate]
    here = "a node" if row.hardware in nodes else "this machine"
    where = here if row.device_present else "absent: compiled and interpreted"
    if row.recorded is not None:
        where = f"replayed: {row.recorded}"
    counts = f"{len(generated.variants):,}", f"{sum(generated.space.values()):,}"
    return row.kernel, row.workload, row.hardware, row.optimization, row.dtype, *counts, where


def _pruned_points(listing: PlanListing) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for task in listing.plan.tasks:
        for pruned in listing.generated[task.row.generate].pruned:
            name = f"{task.row.kernel}.{pruned.implementation}"
            counts[name, pruned.reason, pruned.rule] += pruned.count or 0
    return counts


def _variants(listing: PlanListing) -> Iterator[str]:
    for task in listing.plan.tasks:
        row = task.row
        yield f"{row.kernel} {row.workload} {row.hardware} {row.optimization}"
        for variant in listing.generated[row.generate].variants:
            values = " ".join(f"{name}={value}" for name, value in variant.tunables.items())
            yield f"  {variant.id}  {variant.implementation}  {values}"


def _paths(plan: Plan) -> Iterator[str]:
    for stage in STAGES:
        for key in dict.fromkeys(getattr(task.row, stage) for task in plan.tasks):
            rounds = next(task.row.rounds for task in plan.tasks if getattr(task.row, stage) == key)
            yield from (str(output_path(ROOT, stage, key, number)) for number in range(rounds))
    yield from (str(ROOT / "mutate" / f"{each.key}.json") for each in plan.mutations)
    yield str(ROOT / "aggregate" / plan.aggregate / "summary.json")
    yield str(ROOT / "report" / plan.aggregate / "report.html")
    yield str(ROOT / "track" / plan.aggregate / "tracked.json")
