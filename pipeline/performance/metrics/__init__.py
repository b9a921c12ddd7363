"""Metrics: what is known of a variant, each declared once with its name, unit, type, meaning and value.

From the declarations follow the table `variants` (CSV, Parquet), MLflow's metrics and tags, the report's
table and glossary, and the reference in the docs. Metrics named `estimate_…` are estimates; no other is.
Another package adds metrics through the entry point group `kernelmill.metrics`: a `Metric`, or several.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence

from pipeline.performance.metrics.binary_facts import BINARY_FACTS
from pipeline.performance.metrics.call_times import BASELINES, CALL_TIMES, metrics_of_baseline
from pipeline.performance.metrics.energy_and_memory import ENERGY_AND_MEMORY
from pipeline.performance.metrics.metric import ColumnType, Metric, MetricFamily, Shown
from pipeline.performance.metrics.named_families import COUNTERS, INSTRUCTIONS, TUNABLES
from pipeline.performance.metrics.rates_and_ceilings import BOUND_ESTIMATES, RATES_AND_CEILINGS
from pipeline.performance.metrics.stage_outcomes import STAGE_OUTCOMES, VERIFICATION_ERRORS
from pipeline.performance.metrics.variant_identity import MODEL_USAGE, VARIANT_IDENTITY, configuration
from pipeline.records.entry_points import entry_points
from pipeline.records.errors import ConfigError
from pipeline.records.record import digest
from pipeline.records.results.collection import Result

__all__ = [
    "BINARY_FACTS",
    "FAMILIES",
    "ColumnType",
    "Metric",
    "MetricFamily",
    "Shown",
    "configuration",
    "metrics",
    "metrics_of",
    "reference",
    "shown_metrics",
    "signature",
]

GROUP = "kernelmill.metrics"
GROUPS = {
    "Task and variant": VARIANT_IDENTITY,
    "Stages": STAGE_OUTCOMES,
    "Binary": BINARY_FACTS,
    "Verification": VERIFICATION_ERRORS,
    "Time": CALL_TIMES,
    "Rates and ceilings": RATES_AND_CEILINGS,
    "Energy, memory and clock": ENERGY_AND_MEMORY,
    "Estimates": BOUND_ESTIMATES,
    "Language model": MODEL_USAGE,
}
"""Title -> the metrics of this package with fixed names."""
FAMILIES = (TUNABLES, INSTRUCTIONS, BASELINES, COUNTERS)


@functools.cache
def metrics() -> tuple[Metric, ...]:
    """Every metric with a fixed name, those of other packages last.

    Raises
    ------
    ConfigError
        Two metrics have one name in the tables or in MLflow, or an entry point is no metric.
    """
    found = (*(metric for group in GROUPS.values() for metric in group), *_of_others())
    _require_unique("name", (metric.name for metric in found))
    _require_unique("name in MLflow", (metric.mlflow_name for metric in found))
    return found


def metrics_of(results: Sequence[Result]) -> list[Metric]:
    """Every metric that these results can have: the fixed ones, then the members of each family."""
    return [*metrics(), *(member for family in FAMILIES for member in family.members(results))]


def shown_metrics(baselines: Iterable[str]) -> list[tuple[Metric, Shown]]:
    """The metrics of the report's table of variants with their headings, in the order of its columns."""
    found = [*metrics(), *(metric for name in baselines for metric in metrics_of_baseline(name))]
    pairs = [(metric, metric.shown) for metric in found if metric.shown is not None]
    return sorted(pairs, key=lambda pair: pair[1].position)


def reference() -> dict[str, tuple[Metric, ...]]:
    """Title -> metrics, for a glossary or a reference; a family's have a placeholder such as `<baseline>`."""
    others = metrics()[sum(map(len, GROUPS.values())) :]
    families = tuple(metric for family in FAMILIES for metric in family.documented)
    return GROUPS | {"Families": families} | ({"Other packages": others} if others else {})


@functools.cache
def signature() -> str:
    """A digest that changes with the metrics that there are: tables and runs made from others are stale."""
    return digest(
        [[metric.name, metric.mlflow_name, metric.unit] for group in reference().values() for metric in group]
    )


def _of_others() -> Iterator[Metric]:
    for name, entry in entry_points(GROUP).items():
        loaded = entry.load()
        for metric in loaded if isinstance(loaded, tuple | list) else (loaded,):
            if not isinstance(metric, Metric):
                raise ConfigError(
                    f"entry point {name} of {GROUP}: got {metric!r}, expected a Metric or several; "
                    f"see docs/recipes/metric.md"
                )
            yield metric


def _require_unique(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(f"metrics: two have the {what} {name!r}: rename one of them")
        seen.add(name)
