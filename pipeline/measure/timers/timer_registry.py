"""The timer of each kind of device."""

from pipeline.backends.devices.device import Timer
from pipeline.records.configuration.hardware import BackendKind


def timer_for(kind: BackendKind, *, flush_cache: bool, cuda_graph: bool = False) -> Timer:
    """The timer of a kind of device; a CPU has no graphs to launch."""
    if kind == "cpu":
        from pipeline.backends.devices.cpu.timer import CpuTimer

        return CpuTimer(flush_cache=flush_cache)
    from pipeline.backends.devices.cuda.timer import CudaTimer

    return CudaTimer(flush_cache=flush_cache, cuda_graph=cuda_graph)
