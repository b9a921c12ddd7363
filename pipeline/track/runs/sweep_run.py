"""One run per sweep, in an experiment of its own: Summary, tables and report in, the sweep's run out."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.performance import quantities
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import TaskRow
from pipeline.records.record import Record, to_json
from pipeline.records.results.aggregated import Summary, Winner
from pipeline.records.results.tracked import TaskLinks, TrackingLinks
from pipeline.track import mlflow_ui
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.run_writing import put_artifacts, tag_run
from pipeline.track.stores.mlflow_store import MlflowStore

BEST = "best_us"
AGENT_USE = ("attempts", "sources", "requests", "prompt_tokens", "completion_tokens", "cost", "seconds")
VARIES = "varies"
RESULT = "result"
NAMED = 3  # options of a group that a sweep's name lists; of more it has the number
GROUPS = {
    "kernel": "kernels",
    "workload": "workloads",
    "hardware": "targets",
    "optimization": "optimizations",
    "search": "searches",
}
TABLES = frozenset({".parquet", ".csv", ".md"})


class SweepRun(Record, frozen=True, kw_only=True):
    """What a sweep's run is made of."""

    identity: str
    """Digest of all results: the same sweep ingested twice is one run."""
    experiment: str
    """MLflow's id of the experiment of the sweeps."""
    varies: str
    """What its tasks are, in one line."""
    summary: Summary
    spec: bytes
    folder: Path
    """The tables that aggregate wrote."""
    root: Path
    """The artifact store."""
    links: TrackingLinks | None = None


def open_sweep(store: MlflowStore, sweep: SweepRun) -> str:
    """The run of this sweep: known, or new and not finished yet."""
    query = f"tags.`{mlflow_names.SWEEP}` = '{sweep.identity}'"
    for run in store.client.search_runs([sweep.experiment], query, max_results=10):
        return str(run.info.run_id)
    summary = sweep.summary
    tags = {mlflow_names.SWEEP: sweep.identity, "experiment": summary.experiment, VARIES: sweep.varies}
    if summary.commits:
        tags["mlflow.source.git.commit"] = summary.commits[-1]
    name = f"{summary.experiment}: {sweep.varies}"[: mlflow_names.NAME_LENGTH]
    return str(store.client.create_run(sweep.experiment, tags=tags, run_name=name).info.run_id)


def close_sweep(store: MlflowStore, run: str, sweep: SweepRun, report: Path | None) -> None:
    """Fill the run: counts and rates as metrics, tables as artifacts, winners and links as its text."""
    from mlflow.entities import Metric

    summary = sweep.summary
    info = store.client.get_run(run).info
    now = info.start_time
    tags = {
        "mlflow.note.content": mlflow_names.tag(note(sweep)),
        "versions": mlflow_names.tag(
            " ".join(f"{tool}={'|'.join(v)}" for tool, v in summary.toolchain.items())
        ),
        RESULT: _result(summary),
        "hosts": mlflow_names.tag(" ".join(summary.hosts)),
    }
    if summary.origin:
        tags |= {"origin": summary.origin.line, "bundle": summary.origin.bundle}
        described = (f"{name}={value}" for name, value in summary.origin.environment.items())
        tags["environment"] = mlflow_names.tag(" ".join(described))
    metrics = [Metric(mlflow_names.key(name), value, now, 0) for name, value in _metrics(summary)]
    # The step is the round: MLflow draws the curve.
    metrics += [
        Metric(mlflow_names.key(each.name), each.value, now, each.step) for each in curves_of(sweep.folder)
    ]
    store.client.log_batch(run, metrics=metrics)
    tag_run(store, run, tags)
    tables = tuple((path, "tables") for path in sorted(sweep.folder.iterdir()) if path.suffix in TABLES)
    documents = {"summary.json": to_json(summary), "spec.json": sweep.spec}
    asked = tuple(conversations(sweep.folder, sweep.root))
    put_artifacts(store, info, (*tables, *asked), documents)
    store.client.set_terminated(run)
    if report is not None:
        attach_report(store, run, report)


def what_varies(rows: Sequence[TaskRow]) -> str:
    """The options of a sweep's tasks, and the overrides that tell them apart.

    For example `softmax, rms_norm × bert_base × cpu`. An optimization that all tasks share is left out.
    """
    parts = []
    for group, plural in GROUPS.items():
        names = dict.fromkeys(getattr(row, group).partition("[")[0] for row in rows)
        if len(names) > 1 or group in ("kernel", "workload", "hardware"):
            parts.append(_listed(names, plural))
    overrides: dict[str, dict[str, None]] = {}
    for row in rows:
        for line in row.varied:
            name, _, value = line.partition("=")
            overrides.setdefault(name, {})[value] = None
    parts += [f"{name}={_listed(values, 'values')}" for name, values in overrides.items()]
    return mlflow_names.tag(" × ".join(parts))


def _listed(names: Collection[str], plural: str) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} {plural}"


def _result(summary: Summary) -> str:
    """How its variants ended: `98 passed, 60 device_unavailable`."""
    ended = Counter[str]()
    for outcomes in summary.stages.values():
        ended.update(
            {str(outcome): count for outcome, count in outcomes.items() if outcome != Outcome.PASSED}
        )
    passed = summary.variants - ended.total()
    return ", ".join(f"{count} {name}" for name, count in (("passed", passed), *ended.most_common()))


def attach_report(store: MlflowStore, run: str, report: Path) -> None:
    """Put the report among the run's artifacts."""
    put_artifacts(store, store.client.get_run(run).info, ((report, ""),), {})


def note(sweep: SweepRun) -> str:
    """The run's text: where to look, above the fold of the UI, and the winners."""
    summary = sweep.summary
    lines = [f"**{summary.experiment}**: {summary.description}", ""]
    if summary.origin:
        lines += [f"Made on {summary.origin.line}.", ""]
    if sweep.links:
        found = [f"[Models]({mlflow_ui.within(sweep.links.models)})"]
        if sweep.links.charts:
            found.insert(0, f"[All winners as charts]({mlflow_ui.within(sweep.links.charts)})")
        if sweep.links.searches:
            found.insert(0, f"[Best so far, round by round]({mlflow_ui.within(sweep.links.searches)})")
        lines += [" · ".join(found), ""]
    lines += _winners([winner for winner in summary.winners if isinstance(winner, Winner)])
    if sweep.links:
        lines += [f"- {task.title}: {_pages(task)}" for task in sweep.links.tasks]
    return "\n".join(lines)


def _pages(task: TaskLinks) -> str:
    if task.compare is None:
        return f"[its variants]({mlflow_ui.within(task.charts)})"
    charts, compare = mlflow_ui.within(task.charts), mlflow_ui.within(task.compare)
    return f"[which tunables matter]({charts}) · [compare]({compare})"


class CurvePoint(Record, frozen=True, kw_only=True):
    """A point of a curve by round."""

    quantity: str
    search: str
    title: str
    """What is tuned."""
    value: float
    step: int
    """The round."""

    @property
    def name(self) -> str:
        """Of the metric."""
        return "/".join((self.quantity, self.search, *self.title.split(" · ")))


def curves_of(folder: Path) -> Iterator[CurvePoint]:
    """Best so far in microseconds, variants and seconds spent, each by round, of searches with several."""
    import pyarrow.parquet as pq

    path = folder / "rounds.parquet"
    rows = pq.read_table(path).to_pylist() if path.is_file() else []
    several = {row["task"] for row in rows if row["round"] > 0}
    for row in rows:
        if row["task"] in several:
            title = " · ".join(row[name] for name in ("kernel", "workload", "hardware", "optimization"))
            best = row["best_seconds"]
            found = {
                BEST: None if best is None else 1e6 * best,
                "variants": float(row["variants"]),
                "spent_seconds": row["spent_seconds"],
            }
            for quantity, value in found.items():
                if value is not None:
                    yield CurvePoint(
                        quantity=quantity, search=row["search"], title=title, value=value, step=row["round"]
                    )


def _winners(winners: Sequence[Winner]) -> list[str]:
    if not winners:
        return ["Nothing was measured: no device of these targets was at hand.", ""]
    lines = [
        "| kernel | workload | hardware | time | speed-up | roofline | verified with |",
        "|---|---|---|---:|---|---:|---|",
    ]
    for winner in winners:
        cell = winner.cell
        speedups = ", ".join(
            f"{quantities.digits(entry.speedup.value)}x vs {quantities.baseline(entry.baseline)} "
            f"({entry.verdict})"
            for entry in winner.compared
        )
        cells = (
            cell.kernel,
            cell.workload,
            cell.hardware,
            quantities.seconds(winner.seconds.value),
            speedups or _no_speedup(winner),
            "–" if winner.roofline_share is None else quantities.share(winner.roofline_share),
            (winner.preset or "–") + (", not registered" if winner.editing_only else ""),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _no_speedup(winner: Winner) -> str:
    return f"none: recorded, not measured here: {winner.recorded}" if winner.recorded else "no baseline"


def _metrics(summary: Summary) -> Iterator[tuple[str, float]]:
    yield "tasks", float(summary.tasks)
    yield "variants", float(summary.variants)
    for stage, outcomes in summary.stages.items():
        for outcome, count in outcomes.items():
            yield f"{stage}/{outcome}", float(count)
    for use in summary.agents:
        for name in (
            "attempts",
            "sources",
            "requests",
            "prompt_tokens",
            "completion_tokens",
            "cost",
            "seconds",
        ):
            if (value := getattr(use, name)) is not None:
                yield f"agents/{use.kernel}/{name}", float(value)
    winners = [winner for winner in summary.winners if isinstance(winner, Winner)]
    baselines = dict.fromkeys(entry.baseline for winner in winners for entry in winner.compared)
    for baseline in baselines:
        pairs = [entry for winner in winners for entry in winner.compared if entry.baseline == baseline]
        ratios = [entry.speedup.value for entry in pairs]
        faster = sum(entry.verdict == "faster" for entry in pairs)
        yield f"winners/geomean_speedup_{baseline}", math.exp(sum(map(math.log, ratios)) / len(ratios))
        # fast_p at p = 1 (KernelBench, arXiv:2502.10517), counted only where the interval excludes 1.
        yield f"winners/share_faster_{baseline}", faster / len(ratios)


def conversations(tables: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """Prompts and answers of language models: file, and folder among the artifacts.

    For example `agents/softmax.awkward.cpu/round1/attempt0 wrong_value/0/prompt.md`. A variant's run has
    those of its own source; an attempt that failed has no run, so the sweep's run has them all.
    The folder's name ends with what became of the attempt's variant, or of the attempt that came to none.
    """
    attempts = _rows(tables / "attempts.parquet")
    became = (
        {row["variant"]: row["outcome"] for row in _rows(tables / "variants.parquet")} if attempts else {}
    )
    for row in attempts:
        where = mlflow_names.key(".".join(row[name] for name in ("kernel", "workload", "hardware")))
        ended = became.get(row["variant"], row["outcome"])
        folder = f"agents/{where}/round{row['round']}/attempt{row['attempt']} {ended}"
        for number, entry in enumerate((row["answers"] or "").split()):
            asked = entry_path(root, "answers", entry)
            for path in sorted(asked.glob("*.md")) if asked.is_dir() else ():
                yield path, f"{folder}/{number}"


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    if not path.is_file():
        return []
    columns = pq.read_schema(path).names
    wanted = ["kernel", "workload", "hardware", "round", "attempt", "outcome", "variant", "answers"]
    return list(pq.read_table(path, columns=[name for name in wanted if name in columns]).to_pylist())
