"""The roofline of a target from its declared peaks: an estimate, never a measurement.

Source: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model", CACM 52(4), 2009.
"""

import re
from collections.abc import Mapping

from pipeline.records.configuration.hardware import Quantity
from pipeline.records.configuration.pruning import Bounded
from pipeline.records.errors import ConfigError
from pipeline.records.planning.specs import TaskRow

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIMES = {"s": 1.0, "us": 1e-6, "ns": 1e-9}
LATENCY = "dram_latency"
_RATE = re.compile(r"(?P<prefix>[kMGTP]?)(?P<base>B/s|bytes/s|byte/s|FLOP/s|FLOPS|flop/s|OP/s|op/s)")


def per_second(name: str, quantity: Quantity) -> float:
    """Bytes/s or FLOP/s of a declared peak.

    Raises
    ------
    ConfigError
        The unit is not a rate that we know.
    """
    match = _RATE.fullmatch(quantity.unit.replace(" ", ""))
    if match is None:
        raise ConfigError(f"peaks.{name}: got unit '{quantity.unit}', expected for example GB/s or TFLOP/s")
    return quantity.value * _PREFIXES[match["prefix"]]


def latency_seconds(peaks: Mapping[str, Quantity]) -> float | None:
    """Declared time from a load to its data from memory; None where no source gives one.

    Raises
    ------
    ConfigError
        The unit is not a time that we know.
    """
    if LATENCY not in peaks:
        return None
    quantity = peaks[LATENCY]
    if quantity.unit not in _TIMES:
        raise ConfigError(f"peaks.{LATENCY}: got unit '{quantity.unit}', expected one of {', '.join(_TIMES)}")
    return quantity.value * _TIMES[quantity.unit]


def compute_peak(task: TaskRow | Bounded) -> str | None:
    """Name of the peak that bounds the task's arithmetic; None where the target does not declare it."""
    # Vector kernels compute in float32 whatever the element type is, so that is the unit they occupy.
    candidates = [f"matrix_{task.dtype}"] if task.unit == "matrix" else ["vector_float32"]
    return next((name for name in candidates if name in task.peaks), None)


def peak_rates(task: TaskRow | Bounded) -> tuple[float | None, float | None]:
    """Declared peaks of the task's target: bytes/s of the memory, FLOP/s of the unit it uses."""
    name = compute_peak(task)
    return _rate(task.peaks, "dram_bandwidth"), _rate(task.peaks, name) if name else None


def estimate_roofline_seconds(task: TaskRow) -> float | None:
    """Least time that the declared peaks allow for one call; None where a peak is not declared."""
    bandwidth, arithmetic = peak_rates(task)
    if bandwidth is None or arithmetic is None or task.bytes is None or task.flops is None:
        return None
    return max(task.bytes / bandwidth, task.flops / arithmetic)


def estimate_bound(task: TaskRow) -> str | None:
    """Which peak sets the estimate: `memory` or `compute`."""
    bandwidth, arithmetic = peak_rates(task)
    if bandwidth is None or arithmetic is None or task.bytes is None or task.flops is None:
        return None
    return "memory" if task.bytes / bandwidth >= task.flops / arithmetic else "compute"


def _rate(peaks: Mapping[str, Quantity], name: str) -> float | None:
    return per_second(name, peaks[name]) if name in peaks else None
