"""Estimates the bound of a model without formulas. In: counted operators, ceilings. Out: EstimatedBound."""

from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.measure.hosting.measuring_messages import DispatchedWork
from pipeline.records.results.profiled import Ceilings
from pipeline.records.results.timed import EstimatedBound


def counted_work(counted: DispatchedWork) -> tuple[WorkPerCall, WorkPerCall]:
    """What one call does if all operators are fused, and what no algorithm can avoid.

    Another algorithm may need fewer operations than the operators of `Model` (Strassen, FFT, a factor that
    cancels), and may read less (rows that a mask hides). An estimate that is too high must not refuse it. But
    an element of an output that differs between two contents has to be written in every call.
    """
    usual = WorkPerCall(
        flops=counted.matrix_flops + counted.vector_flops,
        read=max(counted.read, 1.0),  # of a model that uses no input: bandwidths are those of some traffic
        written=counted.written,
        unit="matrix" if counted.matrix_flops > counted.vector_flops else "vector",
        dtype=counted.dtype,
    )
    least = WorkPerCall(
        flops=0.0, read=0.0, written=max(counted.changed, 1.0), unit="vector", dtype=counted.dtype
    )
    return usual, least


def estimated_bound(counted: DispatchedWork, work: WorkPerCall, ceilings: Ceilings) -> EstimatedBound:
    """The slowest of memory, matrix unit and vector unit, all of which work at the same time."""
    memory = work.bytes / ceilings.cache_bandwidth
    # Without a matrix unit, or a kernel of the library for the dtype, the vector unit does products as well.
    matrix = counted.matrix_flops / max(ceilings.matrix_flops, ceilings.vector_flops)
    compute = max(matrix, counted.vector_flops / ceilings.vector_flops)
    return EstimatedBound(
        seconds=max(memory, compute),
        bound="memory" if memory >= compute else "compute",
        matrix_flops=counted.matrix_flops,
        vector_flops=counted.vector_flops,
        read=counted.read,
        written=counted.written,
        dtype=counted.dtype,
    )
