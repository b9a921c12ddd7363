"""The bounds of one variant: its result in, those from declared peaks and from measured ceilings out."""

from pipeline.performance.bound.geometry import Geometry
from pipeline.performance.bound.least import Bound, LeastWork, Rates, bandwidth_share, bound
from pipeline.performance.bound.of_variant import BoundDevice, launch_of, reachable_flops
from pipeline.performance.roofline import latency_seconds, peak_rates
from pipeline.records.results.collection import Result


def declared_bound(result: Result) -> Bound | None:
    """From the target's declared peaks and the launch's shape; None where a peak is not declared."""
    rates, work = _declared_rates(result), _work(result)
    return bound(work, rates, geometry_of(result)) if rates and work else None


def ceiling_bound(result: Result) -> Bound | None:
    """From the ceilings measured beside the variant, its vectors and its launch; None without them."""
    ceilings, work = result.profiled.ceilings if result.profiled else None, _work(result)
    if ceilings is None or work is None:
        return None
    arithmetic = reachable_flops(
        result.compiled.facts if result.compiled else None,
        _device(result),
        vector_flops=ceilings.vector_flops,
        matrix_flops=ceilings.matrix_flops,
    )
    return bound(work, Rates(bandwidth=ceilings.cache_bandwidth, arithmetic=arithmetic), geometry_of(result))


def declared_bandwidth_share(result: Result) -> float | None:
    """Share of the declared bandwidth that the variant's loads in flight can sustain (Little's law)."""
    rates, launch = _declared_rates(result), geometry_of(result)
    return bandwidth_share(rates, launch) if rates and launch else None


def geometry_of(result: Result) -> Geometry | None:
    """How the variant's launch spreads over the target; None on a CPU, and where a call launches several."""
    return launch_of(result.compiled, _device(result)) if result.compiled else None


def _device(result: Result) -> BoundDevice:
    task = result.task
    return BoundDevice(kind=task.kind, unit=task.unit, limits=task.limits)


def _declared_rates(result: Result) -> Rates | None:
    bandwidth, arithmetic = peak_rates(result.task)
    if bandwidth is None or arithmetic is None:
        return None
    return Rates(bandwidth=bandwidth, arithmetic=arithmetic, latency=latency_seconds(result.task.peaks))


def _work(result: Result) -> LeastWork | None:
    task = result.task
    if task.flops is None or task.bytes is None:
        return None
    return LeastWork(flops=task.flops, bytes=task.bytes, read=task.read)
