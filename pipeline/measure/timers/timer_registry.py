"""The timer of each kind of device."""

from pipeline.measure.timers.timer import Timer
from pipeline.records.configuration.hardware import BackendKind


def timer_for(kind: BackendKind, *, flush_cache: bool, cuda_graph: bool = False) -> Timer:
    """The timer of a kind of device; a CPU has no graphs to launch."""
    if kind == "cpu":
        from pipeline.measure.timers.cpu import CpuTimer

        return CpuTimer(flush_cache=flush_cache)
    from pipeline.measure.timers.cuda import CudaTimer

    return CudaTimer(flush_cache=flush_cache, cuda_graph=cuda_graph)
