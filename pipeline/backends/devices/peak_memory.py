"""Peak memory of one call, measured inside the process that makes it: a call in, bytes out.

Device: what torch's caching allocator counts, and what the device has less of without it. A kernel that takes
device memory by itself and gives it back before it returns is not seen.
Host: the kernel's own high-water mark of the resident size (VmHWM), which Linux lets a process reset. Memory
that was freed is given back to the system first, or a call that takes it again would seem to need none.
Figures are known to 128 KiB a processor: the kernel keeps parts of its count there. No huge page is taken
meanwhile.
"""

import contextlib
import ctypes
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.records.results.profiled import Peak

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
_TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD of malloc.h
NEVER_TRIMMED = -1
USUAL_TRIM = 128 << 10  # bytes: glibc's default
_BLOCK = 128 << 10  # bytes
_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42  # linux/prctl.h
_RESET_PEAK = "5"  # proc(5): resets VmHWM to the present resident size


def host_peak(call: Callable[[], object], *, trim_threshold: int = USUAL_TRIM) -> Peak:
    """Make the call once: what it took on the host; malloc's threshold is `trim_threshold` afterwards."""
    _give_back(trim_threshold)
    if not _reset_peak():
        call()
        return Peak()
    with _small_pages():
        before = _kilobytes("VmRSS")
        call()
        after = _kilobytes("VmHWM")
    return Peak(host_bytes=None if before is None or after is None else max(0, after - before) << 10)


def torch_device_peak(call: Callable[[], object]) -> Peak:
    """Make the call once, to its end: what it took on the device that torch calls CUDA's, and on the host."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    held, outside = torch.cuda.memory_allocated(), _taken_outside()

    def finished() -> object:
        result = call()
        torch.cuda.synchronize()
        return result

    host = host_peak(finished)
    return Peak(
        device_bytes=torch.cuda.max_memory_allocated() - held,
        outside_bytes=max(0, _taken_outside() - outside),
        host_bytes=host.host_bytes,
    )


def _taken_outside() -> int:
    """Bytes in use on the device that torch's allocator has not reserved: contexts, libraries, others."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return int(total - free - torch.cuda.memory_reserved())


def _give_back(trim_threshold: int) -> None:
    """glibc's free memory to the system, but for what lies at the end of other threads' arenas.

    `malloc_trim` leaves the end of every arena but the first as it is, and a forked child's main thread may
    use another one. Freeing a block of more than 64 KiB trims the end of the calling thread's arena, if that
    is allowed: on the CPU it is not while calls are timed (`CpuTimer.prepare`), and so it is left.
    """
    library = ctypes.CDLL(None)
    if not all(hasattr(library, name) for name in ("malloc_trim", "mallopt")):
        return  # another C library
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.mallopt(_TRIM_THRESHOLD, 0)
    library.free(library.malloc(_BLOCK))
    library.malloc_trim(ctypes.c_size_t(0))
    library.mallopt(_TRIM_THRESHOLD, trim_threshold)


@contextlib.contextmanager
def _small_pages() -> Iterator[None]:
    """No new huge page in this process: those at an array's ends count up to 2 MiB that it does not have."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None or prctl(_GET_THP_DISABLE, 0, 0, 0, 0) != 0:
        yield
        return
    prctl(_SET_THP_DISABLE, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_THP_DISABLE, 0, 0, 0, 0)


def _reset_peak() -> bool:
    try:
        CLEAR.write_text(_RESET_PEAK)
    except OSError:
        return False
    return True


def _kilobytes(name: str) -> int | None:
    """A line of /proc/self/status, which gives these in KiB."""
    try:
        match = re.search(rf"^{name}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None
