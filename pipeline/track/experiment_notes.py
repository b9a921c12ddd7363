"""Descriptions of the MLflow experiments: links to the prepared pages in, one text per experiment out.

The UI opens an experiment with a plain list of runs, and shows the first line of its description above it. So
that line has the links. They are relative: they work wherever the UI is served.
"""

import itertools
from collections.abc import Iterable, Mapping

from pipeline.performance.metrics import reference
from pipeline.performance.metrics.metric import MetricDeclaration
from pipeline.records.results.tracked import TrackingLinks
from pipeline.track import mlflow_ui
from pipeline.track.stores.mlflow_store import MlflowStore, set_experiment_tags

NOTE = "mlflow.note.content"
MEASURED, COMPILED, SWEEPS = "", "-compiled", "-sweeps"
ABOUT = {
    MEASURED: "One run per measured variant.",
    COMPILED: "Compiled for devices that are absent: facts and estimates from the binaries, no measurement.",
    SWEEPS: "One run per sweep: tables, report, winners.",
}
"""Suffix of the experiment's name -> what it holds."""
OF_BINARIES = ("static/", "estimate/")
KEPT = "Kernelmill keeps this text up to date until you edit it."


def write_notes(store: MlflowStore, experiments: Mapping[str, str], links: TrackingLinks | None) -> None:
    """Describe the experiments (suffix -> id); a description that somebody edited stays as it is."""
    for suffix, experiment in experiments.items():
        known = store.client.get_experiment(experiment).tags.get(NOTE, "")
        is_ours = KEPT in known or known.startswith(ABOUT[suffix])
        if not known or (links and is_ours):
            set_experiment_tags(store, experiment, {NOTE: note(suffix, links)})


def note(suffix: str, links: TrackingLinks | None) -> str:
    """The description: links, what a run is, and the units of the metrics."""
    head = [" · ".join(_links(suffix, links))] if links else []
    tables = [] if suffix == SWEEPS else _units(compiled=suffix == COMPILED)
    return "\n".join([*head, "", f"{ABOUT[suffix]} {KEPT}", "", *tables]).strip()


def _links(suffix: str, links: TrackingLinks) -> Iterable[str]:
    pages = {
        MEASURED: {"All runs as a table": links.runs, "Winners": links.charts},
        COMPILED: {"Facts by target": links.compiled},
        SWEEPS: {"All sweeps as a table": links.sweeps, "Best so far by round": links.searches},
    }
    named = pages[suffix] | ({"Latest sweep and its report": links.sweep, "Models": links.models})
    return (f"[{title}]({mlflow_ui.within(page)})" for title, page in named.items() if page)


def _units(*, compiled: bool) -> list[str]:
    """Name, unit and meaning of each metric that a run can have."""
    found = itertools.chain.from_iterable(reference().values())
    return units([each for each in found if not compiled or each.mlflow_name.startswith(OF_BINARIES)])


def units(declared: Iterable[MetricDeclaration]) -> list[str]:
    """Lines of a table with the name, unit and meaning of each that is a metric in MLflow."""
    lines = ["| metric | unit | meaning |", "|---|---|---|"]
    for each in declared:
        if each.is_mlflow_metric:
            meaning = " ".join(each.meaning.split()).replace("|", "/")
            lines.append(f"| {each.mlflow_name} | {each.mlflow_unit} | {meaning} |")
    return lines
