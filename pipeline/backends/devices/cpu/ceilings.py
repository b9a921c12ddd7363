"""Ceilings of the processor: streams, multiply-adds and empty calls in C++, matrix products of libraries."""

import ctypes
import functools
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.loading import NativeLaunch, share_openmp
from pipeline.backends.devices.cpu.matrix_peaks import matrix_peaks
from pipeline.backends.devices.cpu.processor import last_level_cache, usable_cores
from pipeline.backends.devices.cpu.timer import CpuTimer
from pipeline.backends.devices.device_ceilings import (
    DeviceCeilings,
    Level,
    better,
    envelope,
    gain,
    sizes,
    with_products,
)
from pipeline.backends.devices.disturbance import cpu_seconds, disturbance, load
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.errors import ToolchainError
from pipeline.records.planning.problem import Problem

LIBRARY = "ceilings.so"
SOURCE = Path(__file__).parent / "ceilings.cpp"
COMPILE_SECONDS = 60.0
SMALLEST = 16 << 10  # bytes of one array
BEYOND_CACHE = 4  # the largest array is so many times the last-level cache (STREAM's rule),
LARGEST = 1 << 30  # but not larger
POINT_SECONDS = 0.006  # for one bandwidth in one round
COPY_WAYS = {"memcpy": 0, "ordinary stores": 1, "past the caches": 2}
TRIAD_WAYS = {"ordinary stores": 0, "past the caches": 1}
PLACES = (1, 4)  # at which one thread reads
VECTOR_SECONDS = 0.02
REGION_SECONDS = 0.01
VECTOR_DTYPES = ("float32", "float64", "float16", "bfloat16")
# A moment in which others hold the cores spoils a round, not a figure: each is measured in every round.
ROUNDS_AT_LEAST = 3
SECONDS_AT_LEAST = 1.5  # the rounds of a product alone are short, and would lie in one such moment
SECONDS_AT_MOST = 6.0  # all of it while other work runs, where a peak may be a tenth too low for two seconds;
PRODUCT_SECONDS_AT_MOST = 4.0  # the same for products alone
ROUNDS_AT_MOST = 5  # on a machine that is quiet these are enough,
ENOUGH = 0.01  # or fewer, the last of which improves nothing by more
PAUSE = 0.05  # seconds between rounds: NumPy's threads spin for some 30 ms after a product
MAIN = "DRAM"
CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
EMPTY = Problem(
    kernel="empty",
    dimensions={"n": 16},
    tensors={
        "x": Tensor(role="input", shape=("n",), dtype="float32"),
        "y": Tensor(role="output", shape=("n",), dtype="float32"),
    },
    scalars={},
    attributes={},
    element="float32",
)
EMPTY_CALLS = 200  # some tenths of a millisecond: short enough to lie between two disturbances
EMPTY_SAMPLES = 30


def measure(folder: Path, products: tuple[str, ...], known: DeviceCeilings | None) -> DeviceCeilings:
    """What is not `known`, and these matrix products, in some seconds; the compiled part lies in `folder`."""
    timer = CpuTimer(flush_cache=False)
    timer.prepare()
    share_openmp()
    if known is not None:
        return _rounds(lambda: with_products(known, matrix_peaks(products)), PRODUCT_SECONDS_AT_MOST)
    library = built(folder)
    arrays = Arrays(library)
    found = _rounds(
        lambda: with_products(_base(library, arrays, timer, folder), matrix_peaks(products)), SECONDS_AT_MOST
    )
    arrays.free()
    return found


def _rounds(once: Callable[[], DeviceCeilings], at_most: float) -> DeviceCeilings:
    """The best of some rounds, each of which takes every figure once; `at_most`: seconds."""
    began, before, own = time.perf_counter(), load(), cpu_seconds()
    found = once()
    rounds, improved, alone = 1, True, True
    while not _enough(rounds, time.perf_counter() - began, at_most, improved=improved, alone=alone):
        time.sleep(PAUSE)
        after = better(found, once())
        improved = gain(found, after) > ENOUGH
        beside = disturbance(before, load(), cpu_seconds() - own)
        alone = beside is None or not beside.notes()
        found, rounds = after, rounds + 1
    return found


def _enough(rounds: int, seconds: float, at_most: float, *, improved: bool, alone: bool) -> bool:
    """`alone`: nothing else has run on the machine so far."""
    if rounds < ROUNDS_AT_LEAST or seconds < SECONDS_AT_LEAST:
        return False
    return seconds >= at_most or (alone and (rounds >= ROUNDS_AT_MOST or not improved))


def _base(library: ctypes.CDLL, arrays: "Arrays", timer: CpuTimer, folder: Path) -> DeviceCeilings:
    """Every figure but the matrix products, once."""
    vector = {name: getattr(library, f"ceilings_vector_{name}")(VECTOR_SECONDS) for name in VECTOR_DTYPES}
    streams = _streams(arrays)
    launch = {"call": _empty_call(timer, folder), "region": library.ceilings_region(REGION_SECONDS)}
    return DeviceCeilings(
        copy=envelope(streams["copy"]),
        read=envelope(streams["read"]),
        triad=envelope(streams["triad"]),
        triad_plain=envelope(streams["triad_plain"]),
        levels=cpu_levels(usable_cores()),
        matrix_flops={},
        matrix_library={},
        vector_flops={name: flops for name, flops in vector.items() if flops > 0},
        launch_seconds=launch,
        parts={},
    )


def built(folder: Path) -> ctypes.CDLL:
    """Compile into an empty folder and load: a tenth of the time that the measurement takes.

    Raises
    ------
    ToolchainError
        There is no compiler, or it fails.
    """
    path, log = folder / LIBRARY, folder / "log.txt"
    folder.mkdir(parents=True, exist_ok=True)
    failure = compiler.run(["-o", str(path), str(SOURCE)], folder=folder, log=log, seconds=COMPILE_SECONDS)
    if failure is not None:
        raise ToolchainError(f"{SOURCE.name}: {failure.reason}")
    library = ctypes.CDLL(str(path))
    number, size, pointer, flag = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
    for name, result, arguments_of in (
        ("allocate", pointer, (size,)),
        ("free", None, (pointer,)),
        ("copy", number, (pointer, pointer, size, flag, number)),
        ("read", number, (pointer, size, flag, number)),
        ("triad", number, (pointer, pointer, pointer, size, flag, number)),
        ("region", number, (number,)),
        *((f"vector_{dtype}", number, (number,)) for dtype in VECTOR_DTYPES),
    ):
        function = getattr(library, f"ceilings_{name}")
        function.restype, function.argtypes = result, arguments_of
    return library


class Arrays:
    """Three arrays that lie where the threads that use them touched them first."""

    def __init__(self, library: ctypes.CDLL) -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        beyond = sizes(SMALLEST, BEYOND_CACHE * last_level_cache())[-1]
        self.largest = min(LARGEST, beyond, memory // 8)
        self._library = library
        self._pointers = [library.ceilings_allocate(self.largest) for _ in range(3)]
        if not all(self._pointers):
            raise MemoryError(f"no memory for three arrays of {self.largest} bytes")

    def copy(self, size: int, way: str, seconds: float) -> float:
        """Bytes per second, read plus written, of copying `size` bytes; 0: it has no such way."""
        a, b, _ = self._somewhere(size)
        return float(self._library.ceilings_copy(b, a, size, COPY_WAYS[way], seconds))

    def read(self, size: int, places: int, seconds: float) -> float:
        """Bytes per second of reading `size` bytes, each thread at so many places: 1, 2 or 4."""
        return float(self._library.ceilings_read(self._somewhere(size)[1], size, places, seconds))

    def triad(self, size: int, way: str, seconds: float) -> float:
        """Bytes per second of a[i] = b[i] + s * c[i], `size` bytes each; 0: it has no such way."""
        return float(self._library.ceilings_triad(*self._somewhere(size), size, TRIAD_WAYS[way], seconds))

    def _somewhere(self, size: int) -> list[int]:
        """Other pages each time: a cache finds its place for a line by the address that the page has in
        memory, so that some sets of pages fit better than others."""
        page = os.sysconf("SC_PAGE_SIZE")
        return [each + page * random.randint(0, (self.largest - size) // page) for each in self._pointers]

    def free(self) -> None:
        """Give them back."""
        for pointer in self._pointers:
            self._library.ceilings_free(pointer)


def _streams(arrays: Arrays) -> dict[str, list[tuple[int, float]]]:
    """Bandwidth by working set, of each kind of stream."""
    found: dict[str, list[tuple[int, float]]] = {"copy": [], "read": [], "triad": [], "triad_plain": []}
    for size in [size for size in sizes(SMALLEST, arrays.largest) if size <= arrays.largest]:
        copies = [arrays.copy(size, way, POINT_SECONDS / len(COPY_WAYS)) for way in COPY_WAYS]
        found["copy"].append((2 * size, max(copies)))
        reads = [arrays.read(size, places, POINT_SECONDS / len(PLACES)) for places in PLACES]
        found["read"].append((size, max(reads)))
        triads = {way: arrays.triad(size, way, POINT_SECONDS) for way in TRIAD_WAYS}
        found["triad"].append((3 * size, max(triads.values())))
        found["triad_plain"].append((3 * size, triads["ordinary stores"]))
    return found


def _empty_call(timer: CpuTimer, folder: Path) -> float:
    """Seconds of a C++ kernel that does nothing, called the way kernels are."""
    import torch

    launch = NativeLaunch(folder / LIBRARY, "ceilings_empty", EMPTY)
    tensors = {name: torch.zeros(EMPTY.dimensions["n"]) for name in EMPTY.tensors}
    call = functools.partial(launch, tensors)
    call()
    return min(timer.batch(call, EMPTY_CALLS) for _ in range(EMPTY_SAMPLES)) / EMPTY_CALLS


def cpu_levels(cores: Sequence[int], cpus: Path = CPUS) -> tuple[Level, ...]:
    """Data caches of these cores, each cache counted once however many share it, and then the memory.

    Where Linux does not describe the caches only the memory is left.
    """
    caches: dict[tuple[int, str], int] = {}
    for core in cores:
        for index in sorted((cpus / f"cpu{core}" / "cache").glob("index*")):
            found = _cache(index)
            if found is not None:
                level, shared, size = found
                caches[(level, shared)] = size
    capacity = {
        level: sum(size for (at, _), size in caches.items() if at == level) for level, _ in sorted(caches)
    }
    return (*(Level(name=f"L{level}", capacity=size) for level, size in capacity.items()), Level(name=MAIN))


def _cache(index: Path) -> tuple[int, str, int] | None:
    """Level, the processors that share it, and bytes; None for an instruction cache, and if not known."""
    try:
        level, kind, size, shared = (
            (index / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
    except OSError:
        return None
    match = re.fullmatch(r"(\d+)([KMG]?)", size)
    if kind == "Instruction" or match is None:
        return None
    return int(level), shared, int(match[1]) * _UNITS[match[2]]
