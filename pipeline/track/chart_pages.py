"""Chart pages of MLflow's UI that answer a user's questions: logged tasks in, prepared pages and links out.

MLflow keeps the state of a shared chart page as JSON in a tag of the experiment and opens it by the tag's
key (the UI's own "Share" button does the same). Without it the page shows ten runs and a bar per metric.
The format is not documented: a UI that does not understand it says so and shows its default page.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record, digest, to_json
from pipeline.records.results.tracked import TaskLinks
from pipeline.track import mlflow_ui
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.idempotency import LoggedRuns
from pipeline.track.runs.mlflow_names import SWEEP
from pipeline.track.runs.run_writing import TASK_NAME
from pipeline.track.runs.sweep_run import BEST, RESULT, VARIES, SweepRun, curves_of
from pipeline.track.runs.task_outline import RunOutline, TaskAxes, joined
from pipeline.track.runs.variant_run import TrackedTask
from pipeline.track.stores.mlflow_store import MlflowStore, set_experiment_tags

PREFIX = "mlflow.sharedViewState."
ROUND = "search/round"
AXES_AT_MOST = 8  # axes that are readable in a parallel-coordinates chart
GENERAL = ("Model metrics", "System metrics")
FOLDED = ("speedup", "time", "static", "estimate", "check", "tunable", *GENERAL)
"""Sections that the UI makes of the metrics' prefixes: there, but folded."""

Json = dict[str, object]


class ChartSection(Record, frozen=True, kw_only=True):
    """Charts under one heading."""

    title: str
    columns: int
    charts: tuple[Json, ...]


class ChartPage(Record, frozen=True, kw_only=True):
    """What a chart page shows."""

    query: str
    """The UI's filter for the runs."""
    order: str
    """What the runs are sorted by, largest first: `metrics.y`, `tags.z`."""
    columns: tuple[str, ...]
    """What the table shows: `params.x`, `metrics.y`, `tags.z`."""
    sections: tuple[ChartSection, ...]
    folded: tuple[str, ...] = FOLDED


class ExplainingMetrics(Record, frozen=True, kw_only=True):
    """What a task's runs have that can explain their speed."""

    tunables: Mapping[str, Sequence[str]]
    """Implementation -> its tunables that vary, the most important first."""
    numeric: frozenset[str]
    """Those of them that are metrics, too."""
    facts: tuple[str, ...]
    """Metrics that vary, for example `static/registers`."""
    in_rounds: bool = False
    """Whether a search proposed them in more than one round."""
    authors: tuple[str, ...] = ()
    """Tags with the author of a source and its change."""


def task_page(task: str, goal: str, explained: ExplainingMetrics) -> ChartPage:
    """Which tunables matter for one task, how its search went; nothing is offered where nothing differs."""
    return variants_page(f"tags.task = '{task}'", goal, explained)


def trials_page(task_names: str, goal: str, explained: ExplainingMetrics) -> ChartPage:
    """The trials of a sweep that varies one task, each a task of its own: a pattern of their names."""
    return variants_page(f"tags.{TASK_NAME} LIKE '{task_names}'", goal, explained)


def variants_page(query: str, goal: str, explained: ExplainingMetrics) -> ChartPage:
    """The same for the runs that a query finds."""
    tunables = list(dict.fromkeys(name for names in explained.tunables.values() for name in names))
    parallel = tuple(
        _chart(
            "PARALLEL",
            f"{implementation}: {goal} over the tunables",
            selectedParams=list(reversed(names[:AXES_AT_MOST])),
            selectedMetrics=[goal],
            showAllRuns=True,
        )
        for implementation, names in explained.tunables.items()
    )
    numbers = [f"tunable/{name}" for name in tunables if name in explained.numeric]
    scatter = tuple(_scatter(name, goal) for name in (*numbers[:4], *explained.facts))
    rounds = (_scatter(ROUND, "time/median_us"),) if explained.in_rounds else ()
    found = (
        ChartSection(title="Which tunables matter", columns=1, charts=parallel),
        ChartSection(title="Round by round", columns=1, charts=rounds),
        ChartSection(title="One at a time", columns=2, charts=scatter),
    )
    sections = tuple(section for section in found if section.charts)
    first = [ROUND] if explained.in_rounds else []
    shown = dict.fromkeys([*first, goal, "time/median_us", "roofline_share", *explained.facts])
    return ChartPage(
        query=query,
        order=f"metrics.`{goal}`",
        columns=(
            *_tags(*explained.authors),
            *(f"params.`{name}`" for name in tunables),
            *(f"metrics.`{name}`" for name in shown),
            *_tags("kernel", "workload", "outcome", "overrides"),
        ),
        sections=sections or (ChartSection(title="Variants", columns=1, charts=(_bar(goal),)),),
    )


def rounds_page(sweep: str, curves: Mapping[str, Sequence[str]]) -> ChartPage:
    """The best so far of a sweep's searches by round: what is tuned -> the metrics of its searches."""
    charts = tuple(_lines(names, f"Best so far, µs: {title}") for title, names in curves.items())
    return ChartPage(
        query=f"tags.`{SWEEP}` = '{sweep}'",
        order="attributes.start_time",
        columns=tuple(f"metrics.`{name}`" for names in curves.values() for name in names),
        sections=(ChartSection(title="Best so far in µs, round by round", columns=1, charts=charts),),
        folded=GENERAL,
    )


def winners_page(goal: str) -> ChartPage:
    """The winner of each kernel, workload and hardware."""
    names = dict.fromkeys((goal, "time/median_us", "roofline_share"))
    return ChartPage(
        query="tags.winner = 'true'",
        order=f"metrics.`{goal}`",
        columns=(*_tags("kernel", "workload", "hardware"), *(f"metrics.`{name}`" for name in names)),
        sections=(ChartSection(title="Winners", columns=1, charts=(_bar(goal), _bar("roofline_share"))),),
    )


def runs_page(goal: str) -> ChartPage:
    """All measured runs, made to be read as a table: what each is, its result, how to repeat it."""
    names = dict.fromkeys(("time/median_us", goal, "roofline_share"))
    verdict = (goal.replace("speedup/", "verdict/"),) if goal.startswith("speedup/") else ()
    return ChartPage(
        query="",
        order="attributes.start_time",
        columns=(
            *_tags("kernel", "workload", "hardware", "implementation", "outcome"),
            *(f"metrics.`{name}`" for name in names),
            *_tags(*verdict, "configuration", "overrides"),
        ),
        sections=(
            ChartSection(title="Median time of a call, µs", columns=1, charts=(_bar("time/median_us"),)),
        ),
    )


def sweeps_page() -> ChartPage:
    """All sweeps, the newest first, made to be read as a table: what each varies, and its result."""
    speedup = "winners/geomean_speedup_eager"
    return ChartPage(
        query="",
        order="attributes.start_time",
        columns=(
            *_tags("experiment", VARIES, RESULT),
            *(f"metrics.`{name}`" for name in ("tasks", "variants", speedup)),
        ),
        sections=(ChartSection(title="Winners against eager PyTorch", columns=1, charts=(_bar(speedup),)),),
        folded=GENERAL,
    )


def submissions_page(baseline: str | None) -> ChartPage:
    """All submissions of candidates, made to be read as a table: the best first."""
    goal = "correct" if baseline is None else f"{baseline}/fast_1"
    timed = () if baseline is None else (f"{baseline}/fast_1_sure", f"{baseline}/geomean_all")
    names = dict.fromkeys((goal, "correct", *timed))
    return ChartPage(
        query="",
        order=f"metrics.`{goal}`",
        columns=(
            *(f"metrics.`{name}`" for name in names),
            *_tags("hardware", "device", "problem_set", "verify"),
        ),
        sections=(
            ChartSection(title="Shares of problems", columns=2, charts=tuple(_bar(name) for name in names)),
        ),
        folded=(*GENERAL, *(() if baseline is None else (baseline,))),
    )


def candidates_page(submission: str, baseline: str | None) -> ChartPage:
    """The candidates of one submission (its run), the fastest first."""
    goal = "time/median_us" if baseline is None else f"speedup/{baseline}"
    return ChartPage(
        query=f"tags.submission_run = '{submission}'",
        order=f"metrics.`{goal}`",
        columns=(
            *(f"params.`{name}`" for name in ("problem", "solution")),
            f"metrics.`{goal}`",
            *_tags("outcome", "reason", "level", "category"),
        ),
        sections=(ChartSection(title="Candidates", columns=1, charts=(_bar(goal),)),),
    )


def compiled_page() -> ChartPage:
    """Static facts of the default variants over the targets, made to be read as a table."""
    names = ("registers", "spills", "shared_memory", "code_bytes")
    metrics = (*(f"static/{name}" for name in names), "estimate/occupancy")
    return ChartPage(
        query="tags.default = 'true'",
        order="tags.`kernel`",
        columns=(
            *_tags("kernel", "workload", "hardware", "implementation", "outcome"),
            *(f"metrics.`{name}`" for name in metrics),
            *_tags("overrides"),
        ),
        sections=(
            ChartSection(
                title="From the binaries: nothing is measured", columns=2, charts=tuple(map(_bar, metrics))
            ),
        ),
    )


def state(page: ChartPage) -> str:
    """The page's state as the UI reads it."""
    shown = [_section(section.title, columns=section.columns, cardHeight=400) for section in page.sections]
    cards = [
        chart | {"metricSectionId": digest(section.title)}
        for section in page.sections
        for chart in section.charts
    ]
    content: Json = {
        "searchFilter": page.query,
        "orderByKey": page.order,
        "orderByAsc": False,
        "lifecycleFilter": "Active",
        "runsHiddenMode": "SHOW_ALL",
        "selectedColumns": page.columns,
        "compareRunSections": [*shown, *(_section(name, display=False) for name in page.folded)],
        "compareRunCharts": cards,
        "isAccordionReordered": True,
        "hideEmptyCharts": True,
    }
    return to_json(content).decode()


def _tags(*names: str) -> tuple[str, ...]:
    return tuple(f"tags.`{name}`" for name in names)


def _section(name: str, **settings: object) -> Json:
    return {"uuid": digest(name), "name": name, "display": True, "isReordered": True, **settings}


def _scatter(metric: str, goal: str) -> Json:
    axes = {axis: {"key": key, "type": "METRIC"} for axis, key in (("xaxis", metric), ("yaxis", goal))}
    return _chart("SCATTER", f"{goal} against {metric}", runsCountToCompare=1000, **axes)


def _lines(metrics: Sequence[str], title: str) -> Json:
    return _chart(
        "LINE",
        title,
        metricKey=metrics[0],
        selectedMetricKeys=list(metrics),
        xAxisKey="step",
        selectedXAxisMetricKey="",
        xAxisScaleType="linear",
        scaleType="linear",
        lineSmoothness=0,
        useGlobalLineSmoothing=False,
        useGlobalXaxisKey=False,
        displayPoints=True,
        yAxisKey="metric",
        range={},
        runsCountToCompare=10,
    )


def _bar(metric: str) -> Json:
    return _chart("BAR", metric, metricKey=metric, runsCountToCompare=100)


def _chart(kind: str, title: str, **settings: object) -> Json:
    card = {"type": kind, "uuid": digest([kind, title]), "displayName": title}
    return card | {"deleted": False, "isGenerated": False} | settings


Order = Mapping[tuple[str, ...], Sequence[str]]
"""Kernel, workload, hardware, dtype, implementation -> tunables, the strongest effect first."""


def read_order(aggregate: Path) -> Order:
    """The order in which aggregate lists the effects; empty where the table is not there."""
    order: dict[tuple[str, ...], dict[str, None]] = {}
    path = aggregate / "effects.csv"
    if path.is_file():
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                key = tuple(
                    row[name] for name in ("kernel", "workload", "hardware", "dtype", "implementation")
                )
                order.setdefault(key, {})[row["tunable"]] = None
    return {key: tuple(tunables) for key, tunables in order.items()}


def goal(axes: Iterable[TaskAxes]) -> str:
    """The metric to be explained: the speed-up over the first baseline; without one, the roofline's share.

    Of recorded measurements neither is known: the time.
    """
    several = list(axes)
    baseline = next((each.baseline for each in several if each.baseline is not None), None)
    if baseline is not None:
        return f"speedup/{baseline}"
    recorded = bool(several) and all(each.recorded for each in several)
    return "time/median_us" if recorded else "roofline_share"


def explain(axes: TaskAxes, row: TaskRow, order: Order) -> ExplainingMetrics:
    """The tunables that vary, strongest first, and the facts that vary."""
    cell = (row.kernel, row.workload, row.hardware, row.dtype)
    return ExplainingMetrics(
        tunables={
            implementation: tuple(
                map(mlflow_names.key, _sorted(tunables, order.get((*cell, implementation), ())))
            )
            for implementation, tunables in axes.tunables.items()
            if tunables
        },
        numeric=frozenset(axes.numeric),
        facts=axes.facts,
        in_rounds=axes.in_rounds,
        authors=axes.authors,
    )


def _sorted(tunables: Sequence[str], strongest: Sequence[str]) -> list[str]:
    rank = {name: place for place, name in enumerate(strongest)}
    return sorted(tunables, key=lambda name: rank.get(name, len(rank)))


class TaskRuns(Record, frozen=True, kw_only=True):
    """One task's runs in one experiment."""

    task: TrackedTask
    lines: tuple[RunOutline, ...]
    axes: TaskAxes


Placed = tuple[TaskRuns, LoggedRuns]


def winners(store: MlflowStore, experiment: str, batches: Sequence[TaskRuns]) -> str:
    """Which kernel wins how much, over all tasks."""
    target = goal(batch.axes for batch in batches)
    return _share(store, experiment, {"winners": winners_page(target)})["winners"]


def runs(store: MlflowStore, experiment: str, batches: Sequence[TaskRuns]) -> str:
    """Every measured variant as a row."""
    page = runs_page(goal(batch.axes for batch in batches))
    return _share(store, experiment, {"runs": page}, mode="TABLE")["runs"]


def sweeps(store: MlflowStore, experiment: str) -> str:
    """Every sweep as a row."""
    return _share(store, experiment, {"sweeps": sweeps_page()}, mode="TABLE")["sweeps"]


def submissions(store: MlflowStore, experiment: str, baseline: str | None) -> str:
    """Every submission as a row."""
    page = submissions_page(baseline)
    return _share(store, experiment, {"submissions": page}, mode="TABLE")["submissions"]


def candidates(store: MlflowStore, experiment: str, submission: str, baseline: str | None) -> str:
    """Every candidate of a submission, whose run is given, as a row."""
    name = f"candidates of {submission}"
    return _share(store, experiment, {name: candidates_page(submission, baseline)}, mode="TABLE")[name]


def compiled(store: MlflowStore, experiment: str, batches: Sequence[TaskRuns]) -> str | None:
    """What the compiler made of the default variants on each target."""
    if not any(batch.lines for batch in batches):
        return None
    return _share(store, experiment, {"targets": compiled_page()}, mode="TABLE")["targets"]


def searches(store: MlflowStore, sweep: SweepRun) -> str | None:
    """How the best so far fell, round by round; None where no search has two rounds."""
    curves: dict[str, dict[str, None]] = {}
    for curve in curves_of(sweep.folder):
        if curve.quantity == BEST:
            curves.setdefault(curve.title, {})[mlflow_names.key(curve.name)] = None
    if not curves:
        return None
    page = rounds_page(sweep.identity, {title: tuple(each) for title, each in curves.items()})
    name = f"rounds of {sweep.summary.experiment}"
    return _share(store, sweep.experiment, {name: page})[name]


def tasks(
    store: MlflowStore, experiment: str, placed: Sequence[Placed], aggregate: Path
) -> tuple[TaskLinks, ...]:
    """Which tunables matter, task by task; the trials of one search share a page."""
    order = read_order(aggregate)
    groups = _grouped([entry for entry in placed if entry[0].lines])
    names = [_name(group) for group in groups]
    pages = {name: _page(group, order) for name, group in zip(names, groups, strict=True)}
    charts = _share(store, experiment, pages)
    return tuple(
        _links(store, experiment, group, charts[name]) for name, group in zip(names, groups, strict=True)
    )


def _grouped(placed: Sequence[Placed]) -> list[list[Placed]]:
    """One group a task; tasks of one variant each, that overrides tell apart, are one group."""
    groups: dict[str, list[Placed]] = {}
    for entry in placed:
        row = entry[0].task.row
        is_trial = bool(row.varied) and not entry[0].axes.differ
        groups.setdefault(_pattern(row) if is_trial else row.task, []).append(entry)
    return list(groups.values())


def _pattern(row: TaskRow) -> str:
    """What finds the names of tasks that differ in overrides alone: `softmax/bert_base[%/cpu/defaults`."""
    return f"{row.kernel}/{row.workload.partition('[')[0]}[%/{row.hardware}/{row.optimization}"


def _name(group: Sequence[Placed]) -> str:
    """What the page is called in the store, while trials are added."""
    task = group[0][0].task
    return task.name if len(group) == 1 else _pattern(task.row)


def _title(group: Sequence[Placed]) -> str:
    task = group[0][0].task
    if len(group) == 1:
        return task.title
    row = task.row
    named = (row.kernel, row.workload.partition("[")[0], row.hardware, row.optimization)
    return f"{' · '.join(named)} · {len(group)} trials"


def _page(group: Sequence[Placed], order: Order) -> ChartPage:
    row = group[0][0].task.row
    axes = joined([batch.axes for batch, _ in group])
    explained = explain(axes, row, order)
    if len(group) == 1:
        return task_page(row.task, goal([axes]), explained)
    return trials_page(_pattern(row), goal([axes]), explained)


def _links(store: MlflowStore, experiment: str, group: Sequence[Placed], charts: str) -> TaskLinks:
    found = [(line, logged.runs[line.slot]) for batch, logged in group for line in batch.lines]
    fastest_first = sorted(found, key=lambda entry: entry[0].median or 0.0)
    runs = [run for _, run in fastest_first]
    address, count = mlflow_ui.compare(mlflow_ui.base(store.uri), experiment, runs)
    differ = joined([batch.axes for batch, _ in group]).differ
    return TaskLinks(
        task=group[0][0].task.row.task,
        title=_title(group),
        runs=len(runs),
        charts=charts,
        compare=address if differ else None,
        compared=count if differ else 0,
        differ=differ,
    )


def _share(
    store: MlflowStore,
    experiment: str,
    pages: Mapping[str, ChartPage],
    mode: Literal["CHART", "TABLE"] = "CHART",
) -> dict[str, str]:
    """Keep the layouts of pages under keys that stay the same; name of the page -> link to it."""
    keys = {name: digest(name) for name in pages}
    tags = {f"{PREFIX}{keys[name]}": state(page) for name, page in pages.items()}
    set_experiment_tags(store, experiment, tags)
    base = mlflow_ui.base(store.uri)
    return {name: mlflow_ui.runs(base, experiment, view=key, mode=mode) for name, key in keys.items()}
