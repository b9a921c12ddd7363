"""What a run came to: a plan and its outputs in; a record for programs and text for a terminal out."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.execution.failure_listing import FailureReason, failure_lines, find_outcome
from pipeline.execution.run_display import JobLabels
from pipeline.execution.snakemake_command import SnakemakeExit
from pipeline.performance.quantities import digits, seconds
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.record import Record, read_record
from pipeline.records.results.aggregated import Summary, Winner
from pipeline.records.results.tracked import Tracked, TrackOutput
from pipeline.report.summary import summary_text
from pipeline.report.tables.facts_table import FACT_HEADINGS
from pipeline.stages.table import STAGES, final, rounds
from pipeline.track.stores.mlflow_store import is_server

ROWS_SHOWN = 12
"""Of a table in the terminal; the file has all."""
FACTS_SHOWN = 40
"""Of the static facts, where nothing else was asked for."""
COMPETING = ("optimization", "search")
"""What tasks of one name may differ in."""
_SUBJECT = ("kernel", "workload", "hardware")
_TASK = (*_SUBJECT, "optimization")


class RunResult(Record, frozen=True, kw_only=True):
    """What a run came to, as far as it went."""

    experiment: str
    variants: int
    passed: int
    failures: tuple[FailureReason, ...]
    failed_jobs: tuple[str, ...]
    """Jobs that ended without an output: what, why, log."""
    summary: Summary | None
    """None if the tables were not made."""
    report: str | None
    tables: str | None
    """Folder of the tables."""
    tracking: str | None
    """Address of the MLflow store, or why nothing was tracked."""
    page: str | None = None
    """The page of MLflow's UI to begin with."""

    @property
    def succeeded(self) -> bool:
        """Whether anything of what was asked for did; nothing was, if only generate ran."""
        return self.passed > 0 or (self.variants == 0 and self.summary is None)


def job_labels(plan: Plan) -> JobLabels:
    """What the jobs of a plan are called in the terminal; tasks may share one.

    Those of one stage that would have one name also have what they were asked for with.
    """
    titles: dict[tuple[str, str], str] = {}
    variants: dict[tuple[str, str], int] = {}
    subjects: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    asked: dict[tuple[str, str], list[str]] = {}
    lines = {task: job.overrides for job in reversed(plan.jobs) for task in job.tasks}
    for task in plan.tasks:
        chosen = [f"{name}={getattr(task.row, name)}" for name in COMPETING]
        chosen = list(dict.fromkeys((*chosen, *lines.get(task.row.task, ()))))
        for stage in rounds():
            place = (stage.name, getattr(task.row, stage.name))
            subjects.setdefault(place, []).append(tuple(getattr(task.row, name) for name in _SUBJECT))
            asked[place] = [line for line in asked.get(place, chosen) if line in chosen]
            if stage.entry is not None:
                variants.setdefault(place, task.proposed)
    for place, names in subjects.items():
        titles[place] = " ".join(",".join(dict.fromkeys(column)) for column in zip(*names, strict=True))
    alike: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for (stage_name, key), title in titles.items():
        alike.setdefault((stage_name, title), {})[stage_name, key] = asked[stage_name, key]
    for (_, title), several in alike.items():
        titles |= {place: f"{title} {label}".rstrip() for place, label in _labels(several).items()}
    for mutation in plan.mutations:
        titles["mutate", mutation.key] = f"{mutation.kernel} {mutation.implementation}"
    for stage in STAGES.values():
        if stage.plan_wide:
            titles[stage.name, plan.aggregate] = plan.experiment
    return JobLabels(titles=titles, variants=variants)


def _labels(several: Mapping[tuple[str, str], Sequence[str]]) -> dict[tuple[str, str], str]:
    """What distinguishes jobs of equal names: the overrides that not all have, keys without their groups."""
    common = set.intersection(*(set(lines) for lines in several.values()))
    own = {place: [line for line in lines if line not in common] for place, lines in several.items()}
    short = {place: " ".join(map(_short, lines)) for place, lines in own.items()}
    if len(set(short.values())) == len({tuple(lines) for lines in own.values()}):
        return short
    return {place: " ".join(lines) for place, lines in own.items()}


def _short(line: str) -> str:
    """`optimization.fixed.LANES=8` -> `LANES=8`."""
    key, equals, value = line.partition("=")
    return f"{key.rpartition('.')[2]}{equals}{value}"


def is_finished(plan: Plan, root: Path) -> bool:
    """Whether a run of the plan has ended: names of outputs say what they were made from."""
    return all(stage.output_path(root, plan.aggregate).is_file() for stage in final() if stage.file)


def result_of(plan: Plan, root: Path, ended: SnakemakeExit) -> RunResult:
    """Read what there is."""
    outcome = find_outcome(plan, root)
    path = {name: STAGES[name].output_path(root, plan.aggregate) for name in ("aggregate", "track", "report")}
    tables = path["aggregate"].is_file()
    tracked = read_record(path["track"], TrackOutput).result if path["track"].is_file() else None
    tracking = page = None
    if tracked is not None:
        tracking = tracked.uri if isinstance(tracked, Tracked) else tracked.reason
        page = tracked.links.first if isinstance(tracked, Tracked) else None
    return RunResult(
        experiment=plan.experiment,
        variants=outcome.variants,
        passed=outcome.passed,
        failures=outcome.failures,
        failed_jobs=ended.failed_jobs,
        summary=read_record(path["aggregate"], Summary) if tables else None,
        report=str(path["report"]) if path["report"].is_file() else None,
        tables=str(path["aggregate"].parent) if tables else None,
        tracking=tracking,
        page=page,
    )


def result_text(result: RunResult) -> str:
    """Winners, what techniques are worth, searches, failures, and where the rest is."""
    parts: list[Sequence[str]] = []
    if result.summary is not None:
        parts.append([summary_text(result.summary).rstrip("\n")])
    if result.tables is not None:
        winners = () if result.summary is None else result.summary.winners
        if not any(isinstance(each, Winner) for each in winners):  # nothing was measured
            parts.append(_facts(_rows(Path(result.tables) / "static_facts.csv")))
        parts.append(_ablation(_rows(Path(result.tables) / "ablation.csv")))
        parts.append(_searches(_rows(Path(result.tables) / "rounds.csv")))
    parts.append(failure_lines(result.failures))
    parts.append(_places(result))
    return "\n" + "\n\n".join("\n".join(lines) for lines in parts if lines)


def _places(result: RunResult) -> list[str]:
    if result.summary is None:  # only an earlier stage was asked for, or the run did not get there
        passed = f"{result.passed} of {result.variants} variants"
        return [f"{result.experiment}: {passed} passed the stages that have run"]
    lines = [f"report   {result.report}"] if result.report else []
    if result.page is not None:
        served = result.tracking is not None and is_server(result.tracking)
        lines.append(f"MLflow   {result.page}" if served else f"MLflow   kernelmill ui, then {result.page}")
    elif result.tracking is not None:
        lines.append(f"MLflow   {result.tracking}")
    return lines


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _facts(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Of the binary that stands for each kernel, workload and GPU target."""
    found = [row for row in rows if row["choice"] != "best occupancy" and not executes_on_host(row["kind"])]
    if not found:
        return []
    heading = ("kernel", "implementation", "workload", "hardware", *FACT_HEADINGS.values())
    cells = [
        (
            *(row[name] for name in ("kernel", "implementation", "workload", "hardware")),
            *(_fact(name, row[name]) for name in FACT_HEADINGS),
        )
        for row in found[:FACTS_SHOWN]
    ]
    note = "the defaults; static_facts.csv names their tunables, and the variants with the best occupancy"
    return [f"Static facts ({note}):", *aligned([heading, *cells]), *_more(found, FACTS_SHOWN)]


def _fact(name: str, text: str) -> str:
    if name == "estimate_occupancy" and text:
        return f"{float(text):.0%}"
    return f"{int(text):,}" if text.isdigit() else text or "-"


def _ablation(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """What each technique is worth; the most valuable first."""
    if not rows:
        return []
    ranked = sorted(rows, key=lambda row: -float(row["time_ratio"] or 0))
    heading = (*_TASK, "without", "changed", "time", "x time (interval)", "verdict")
    cells = [
        (
            *(row[name] for name in _TASK),
            row["technique"],
            row["changed"] + (f", by the rules {row['along']}" if row["along"] else ""),
            _time(row["seconds"]),
            _interval(row),
            row["verdict"],
        )
        for row in ranked[:ROWS_SHOWN]
    ]
    limits = sorted({float(row["threshold"]) for row in ranked if row["threshold"]})
    rule = " or ".join(digits(limit) for limit in limits)
    legend = [f"  pays: the whole interval lies above {rule}"] if limits else []
    if len(limits) > 1:
        legend[0] += ", which is for variants that were timed in a single process"
    return ["What the winner loses without a technique:", *aligned([heading, *cells]), *_more(rows), *legend]


def _interval(row: Mapping[str, str]) -> str:
    if not row["time_ratio"]:
        return "-"
    low, high = (digits(float(row[f"time_ratio_{end}"])) for end in ("low", "high"))
    return f"{digits(float(row['time_ratio']))} ({low}-{high})"


def _searches(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The best so far by round, of searches that have several."""
    several = {row["task"] for row in rows if int(row["round"]) > 0}
    found = [row for row in rows if row["task"] in several]
    if not found:
        return []
    heading = (*_TASK, "search", "round", "proposed", "failed", "measured", "best so far")
    cells = [
        (
            *(row[name] for name in (*_TASK, "search", "round", "proposed", "failed", "measured")),
            _time(row["best_seconds"]),
        )
        for row in found[:ROWS_SHOWN]
    ]
    return ["Searches by round:", *aligned([heading, *cells]), *_more(found)]


def _time(text: str) -> str:
    return seconds(float(text)) if text else "-"


def _more(rows: Sequence[Any], shown: int = ROWS_SHOWN) -> list[str]:
    left = len(rows) - shown
    return [f"… and {left} more rows in the tables"] if left > 0 else []


def aligned(rows: Sequence[Sequence[str]], *, indent: int = 2) -> list[str]:
    """Columns of equal width; numbers to the right."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [
        all(cell[:1].isdigit() or cell == "-" for cell in column[1:]) and len(column) > 1
        for column in columns
    ]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append(" " * indent + "  ".join(cells).rstrip())
    return lines
