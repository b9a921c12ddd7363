"""The clock of NVIDIA's and AMD's GPUs: device events around the calls, L2 flushed, launches as a graph."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.backends.devices.device import FLUSH_FACTOR, Call, CannotRecord, RecordedCall

if TYPE_CHECKING:
    import torch

    Marks = tuple[torch.cuda.Event, torch.cuda.Event]
    """Recorded before and after a call."""

WARM_UP_CALLS = 3  # on a side stream before a graph is recorded
UNROLLED = 100e-6  # seconds that a graph of several calls lasts: to start one takes about 4.5 µs on an H200
PROBED = 10  # calls in a graph that shows how long they are
MOST_UNROLLED = 50
COVER = 3.0  # times the launch's cost on the host that a flush lasts
RESOLUTION = 0.5e-6  # seconds, of device events
COVERED_FLUSHES = 4  # in the sample of how long one lasts
MOST_FLUSHES = 64  # passes over the scratch memory
MOST_QUEUED = 256  # launches, where a launch may be of several kernels


class CudaTimer:
    """Device events around the calls; the L2 cache is overwritten before each call where asked for."""

    def __init__(self, *, flush_cache: bool) -> None:
        self._flush = flush_cache
        self._scratch: torch.Tensor | None = None
        self._passes = 1

    def prepare(self) -> None:
        """Open the device's context now, outside every measured time."""
        import torch

        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()

    def recorded(self, call: Call) -> RecordedCall:
        """The call's launches, recorded once and several times; tensors keep their addresses.

        Warm-up on a stream of its own first, as torch's notes on graphs ask for (torch.cuda.CUDAGraph).
        """
        import torch

        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_CALLS):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        one = _graph(call, 1)
        if self._replayed(one) > UNROLLED:
            return RecordedCall(one, one, 1)
        seconds = self._replayed(_graph(call, PROBED)) / PROBED
        calls = min(MOST_UNROLLED, math.ceil(UNROLLED / max(seconds, RESOLUTION)))
        several = _graph(call, calls)
        several()
        return RecordedCall(one, several, calls)

    def _replayed(self, graph: Call) -> float:
        """Seconds of a graph, once it is on the device."""
        graph()
        return self.straight(graph, WARM_UP_CALLS) / WARM_UP_CALLS

    def settle(self, call: Call, seconds: float) -> None:
        """Untimed calls until the clock has risen."""
        import torch

        end = time.perf_counter() + seconds
        call()
        torch.cuda.synchronize()
        while time.perf_counter() < end:
            call()
            torch.cuda.synchronize()

    def batch(self, call: Call, calls: int) -> float:
        """Time on the device between events, host overhead hidden where calls queue up."""
        if self._flush:
            self._cover(call)
            return sum(_seconds([self._flushed(call) for _ in range(calls)]))
        return self.straight(call, calls)

    def straight(self, call: Call, calls: int) -> float:
        """From an event before the first launch to one behind the last."""
        import torch

        at_once, rest = 0, calls
        if isinstance(call, RecordedCall):
            at_once, rest = divmod(calls, call.calls)
        torch.cuda.synchronize()
        first, last = _event(), _event()
        first.record()
        for _ in range(at_once):
            call.several()  # type: ignore[attr-defined]
        for _ in range(rest):
            call()
        last.record()
        return sum(_seconds([(first, last)]))

    def latencies(self, call: Call, gaps: Sequence[float]) -> tuple[float, ...]:
        """The device idles in the gaps, so that its clocks may sink; each call is waited for."""
        import torch

        marks = []
        for gap in gaps:
            if self._flush:
                self._evict()
            torch.cuda.synchronize()
            time.sleep(gap)
            marks.append(_marked(call))
        return _seconds(marks)

    def host_seconds(self, call: Call, calls: int) -> float:
        """Time to enqueue a call, the queue (1,024 launches) far from full."""
        import torch

        calls = min(calls, MOST_QUEUED)
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        spent = time.perf_counter_ns() - start
        torch.cuda.synchronize()
        return spent * 1e-9 / calls

    def facts(self) -> dict[str, str]:
        """Name, capability, multiprocessors, L2, driver's runtime, torch."""
        import torch

        properties = torch.cuda.get_device_properties(0)
        return {
            "name": properties.name,
            "capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": str(properties.multi_processor_count),
            "l2_bytes": str(properties.L2_cache_size),
            "runtime": str(torch.version.cuda or torch.version.hip),
            "torch": str(torch.__version__),
            "timer": "device events",
        }

    def _flushed(self, call: Call) -> "Marks":
        for _ in range(self._passes):
            self._evict()
        return _marked(call)

    def _cover(self, call: Call) -> None:
        """Flush so often that the device is busy while the host launches the call.

        Otherwise the device would wait for the launch after the first event, and a slow launch would count as
        a slow kernel.
        """
        self._evict()
        host = self.host_seconds(call, 1)
        flush = self.straight(self._evict, COVERED_FLUSHES) / COVERED_FLUSHES
        needed = math.ceil(COVER * host / max(flush, RESOLUTION))
        self._passes = min(max(self._passes, needed), MOST_FLUSHES)

    def _evict(self) -> None:
        import torch

        if self._scratch is None:
            size = FLUSH_FACTOR * torch.cuda.get_device_properties(0).L2_cache_size
            self._scratch = torch.empty(size, dtype=torch.int8, device="cuda")
        self._scratch.zero_()


def _graph(call: Call, calls: int) -> Call:
    import torch

    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
    except RuntimeError as error:
        raise CannotRecord(f"it cannot be recorded as a CUDA graph: {error}") from error
    replay: Call = graph.replay
    return replay


def _marked(call: Call) -> "Marks":
    first, last = _event(), _event()
    first.record()
    call()
    last.record()
    return first, last


def _event() -> "torch.cuda.Event":
    import torch

    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _seconds(marks: "Sequence[Marks]") -> tuple[float, ...]:
    """Seconds between the two events of each pair, once the device has reached them."""
    import torch

    torch.cuda.synchronize()
    return tuple(1e-3 * float(first.elapsed_time(last)) for first, last in marks)
