"""The report: tables of aggregate in, one self-contained HTML page out.

The page holds its styles, scripts and data; it opens from disk without network.
"""

import functools
import importlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.performance import quantities
from pipeline.performance.metrics import reference
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.results.aggregated import NotMeasured, Winner
from pipeline.records.results.tracked import Tracked
from pipeline.report.page.page_data import AggregateTables, PageLinks, page_data
from pipeline.report.page.table_sections import (
    FACTS,
    ablations,
    causes,
    facts_tables,
    finding_counts,
    left_out,
    searches,
    verification,
    winner_findings,
)
from pipeline.report.tables.estimate_error_table import WORDS
from pipeline.report.tables.mutants_table import scores
from pipeline.report.winner_selection import mean_speedups

if TYPE_CHECKING:
    import jinja2

TEMPLATE = "report.html.j2"
SHORT = 16  # characters of a version that stands in the page's header; flags do not
LIBRARIES = ("pyarrow.compute", "pyarrow.parquet")
INLINED = ("report.css", "plot.js", "charts.js", "table.js")


Jobs = tuple[tuple[str, ...], ...]
"""The overrides of each job of a run or sweep."""


def render_page(
    spec: AggregateSpec,
    tables: AggregateTables,
    links: PageLinks,
    tracked: Tracked | None = None,
    jobs: Jobs = (),
) -> str:
    """The whole page. `tracked`: where the results are in MLflow, if they were logged before; `jobs`: what
    they were asked for with, where that is known."""
    data = page_data(spec, tables, links)
    context = _context(spec, tables, links) | {"tracked": tracked, "commands": _commands(spec, jobs)}
    return render_template(TEMPLATE, context, INLINED, data)


def render_template(name: str, context: Mapping[str, Any], inlined: Sequence[str], data: object) -> str:
    """A page that holds its styles and scripts (`inlined`) and what the scripts draw (`data`)."""
    from markupsafe import Markup

    environment = _environment()
    loader = environment.loader
    assert loader is not None
    sources = {each: Markup(loader.get_source(environment, each)[0]) for each in inlined}
    return environment.get_template(name).render(**context, inlined=sources, data=Markup(embedded(data)))


def prepare() -> None:
    """Import what is imported where it is used, and compile the templates, in a process to be forked."""
    for name in LIBRARIES:
        importlib.import_module(name)
    environment = _environment()
    for name in environment.list_templates(extensions=["j2"]):
        environment.get_template(name)


@functools.cache
def _environment() -> "jinja2.Environment":
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        name: getattr(quantities, name) for name in ("digits", "counted", "counted_outcome", "baseline")
    }
    environment.filters["with_code"] = _with_code
    environment.filters |= {
        name: _unbroken(getattr(quantities, name)) for name in ("seconds", "rate", "share", "span")
    }
    return environment


def _with_code(text: str) -> str:
    """What stands between backticks is set as code."""
    from markupsafe import Markup, escape

    parts = enumerate(str(escape(part)) for part in text.split("`"))
    return Markup("".join(f"<code>{part}</code>" if number % 2 else part for number, part in parts))


def _unbroken(write: Callable[..., str]) -> Callable[..., str]:
    """A number stays on one line with its unit."""
    return lambda *values: write(*values).replace(" ", "\u00a0")


def embedded(value: object) -> str:
    """JSON that may stand in a script element: nothing in it can end the element."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _context(spec: AggregateSpec, tables: AggregateTables, links: PageLinks) -> dict[str, Any]:
    summary = tables.summary
    winners = [winner for winner in summary.winners if isinstance(winner, Winner)]
    cells, constraints = left_out(tables)
    return {
        "spec": spec,
        "title": _title(spec),
        "summary": summary,
        "stages": _stages(tables),
        "winners": winners,
        "means": mean_speedups(winners),
        "missing": _missing(tables),
        "baselines": list(dict.fromkeys(entry.baseline for winner in winners for entry in winner.compared)),
        "facts_tables": facts_tables(tables),
        "facts": FACTS,
        "causes": causes(tables, links),
        "verification": verification(tables),
        "winner_findings": winner_findings(tables),
        "finding_counts": finding_counts(tables),
        "estimate_errors": tables.read("estimate_error").to_pylist(),
        "bases": WORDS,
        "mutation": scores(tables.read("mutants").to_pylist()),
        "searches": searches(tables),
        "ablations": ablations(tables),
        "cells": cells,
        "constraints": constraints,
        "metrics": [metric for group in reference().values() for metric in group],
        "versions": {
            tool: found for tool, found in summary.toolchain.items() if max(map(len, found)) <= SHORT
        },
        "files": {name: links.to_file(tables.folder / file) for name, file in summary.tables.items()},
    }


NAMED = 3


def _title(spec: AggregateSpec) -> str:
    """What the page is about: `softmax · bert_base · cpu`, of many names how many they are."""
    parts = []
    for axis, noun in (("kernel", "kernel"), ("workload", "workload"), ("hardware", "hardware target")):
        names = list(dict.fromkeys(getattr(task, axis) for task in spec.tasks))
        parts.append(", ".join(names) if len(names) <= NAMED else quantities.counted(len(names), noun))
    return " · ".join(part for part in parts if part) or spec.experiment


def _commands(spec: AggregateSpec, jobs: Jobs) -> list[str]:
    """What runs the same tasks again; of a sweep, job by job. Without `jobs`, by the names of the tasks."""
    if jobs:
        return [shlex.join(("kernelmill", "run", *job)) for job in jobs]
    axes = ("kernel", "workload", "hardware", "optimization", "search")
    names = {axis: dict.fromkeys(getattr(task, axis) for task in spec.tasks) for axis in axes}
    chosen = [f"{axis}={','.join(found)}" for axis, found in names.items() if found]
    return [shlex.join(("kernelmill", "run", f"experiment={spec.experiment}", *chosen))]


def _stages(tables: AggregateTables) -> list[dict[str, Any]]:
    """The funnel: how many variants passed each stage, and what happened to the others."""
    rows = []
    for stage, verb in (
        ("generate", "proposed"),
        ("compile", "compiled"),
        ("verify", "verified"),
        ("profile", "measured"),
    ):
        counts = {str(outcome): count for outcome, count in tables.summary.stages.get(stage, {}).items()}
        others = {outcome: count for outcome, count in counts.items() if outcome != "passed"}
        rows.append({"stage": stage, "verb": verb, "passed": counts.get("passed", 0), "others": others})
    return rows


def _missing(tables: AggregateTables) -> list[dict[str, Any]]:
    """Cells without a measurement; targets that share kernel, workload and reason share a row."""
    groups: dict[tuple[str, ...], list[NotMeasured]] = {}
    for entry in tables.summary.winners:
        if isinstance(entry, NotMeasured):
            cell = entry.cell
            key = (cell.kernel, cell.workload, cell.dtype, entry.reason, entry.where or "")
            groups.setdefault(key, []).append(entry)
    return [
        dict(zip(("kernel", "workload", "dtype", "reason", "where"), key, strict=True))
        | {
            name: sum(getattr(entry, name) for entry in group)
            for name in ("variants", "compiled", "verified")
        }
        | {"targets": group}
        for key, group in groups.items()
    ]
