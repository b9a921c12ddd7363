"""What the tables about searches have in common: a task or a result in, its cells out."""

from collections.abc import Mapping

from pipeline.performance.metrics import ColumnType
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.planning.specs import TaskRow
from pipeline.records.results.collection import Result

TASK: dict[str, ColumnType] = {
    "task": "string",
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "optimization": "string",
    "search": "string",
    "dtype": "string",
}


def task_cells(task: TaskRow) -> dict[str, object]:
    """Which search it was."""
    return {name: getattr(task, name) for name in TASK}


def configuration(tunables: Mapping[str, TunableValue]) -> str:
    """`BLOCK=128 num_warps=4`."""
    return " ".join(f"{name}={value}" for name, value in tunables.items())


def median_seconds(result: Result) -> float:
    """Of a call; only of a result that was measured."""
    assert result.profiled is not None
    return result.profiled.timing.median.value
