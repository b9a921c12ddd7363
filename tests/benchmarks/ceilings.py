"""Our ceilings of this machine compared with other tools, as docs/results/ceilings.md.

    python -m tests.benchmarks.ceilings [--seconds 300] [--out FILE]

Our ceilings are measured as the pipeline does it. Then, round after round until the time is up, its own
functions sample each quantity, and right before or after that likwid-bench runs its kernel on the same
working set, or NumPy multiplies matrices; the rounds' ratios are compared. Run it on a quiet machine; where a
tool is missing its rows are left out, with the reason.
"""

import argparse
import ctypes
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipeline.backends.cpp.loading import share_openmp
from pipeline.backends.devices.cpu.ceilings import COPY_WAYS, PAUSE, Arrays, built
from pipeline.backends.devices.cpu.matrix_peaks import peak_of
from pipeline.backends.devices.cpu.processor import usable_cores
from pipeline.backends.devices.cpu.timer import CpuTimer
from pipeline.backends.devices.device_ceilings import DeviceCeilings, at, level_of
from pipeline.backends.devices.device_lock import device_lock
from pipeline.measure.ceilings import ceiling_measurement
from pipeline.measure.comparison.bench import PRELOAD
from pipeline.plan.local_machine import read_machine
from pipeline.sandbox.processes.fork_server import ForkServer
from tests.benchmarks import likwid
from tests.benchmarks.ceilings_page import INTRODUCTION, Row, gains, table
from tests.benchmarks.ceilings_rounds import Quantity, Sample, fastest, sampled
from tests.benchmarks.machine import where
from tests.paths import ROOT

TARGET = ROOT / "docs" / "results" / "ceilings.md"
SERIES = ("copy", "read", "triad")
COPY_KERNELS = ("copy", "copy_mem")
TRIAD_KERNELS = ("stream", "stream_mem")
READ_KERNELS = {1: "load", 2: "ddot"}
"""Places that a thread reads at once -> likwid's kernel."""
MORE_PLACES = 4
PEAKS = {"float32": "peakflops_sp", "float64": "peakflops"}
BYTES_PER_RUN = 3e9  # of one run in a cache: some tens of milliseconds,
TRAVERSALS = 20  # and beyond the caches: in shorter runs the start of its threads shows
FLOPS_SIZE = 16_000  # bytes that its peak kernels load over and over
FLOPS_ELEMENT = {"float32": 4, "float64": 8}
FLOPS_SECONDS = 0.03
PRODUCT_DTYPES = ("float32", "float64")
PRODUCT = """
import sys, time, numpy as np
best = 0.0
for size in (512, 1024, 2048):
    a = np.ones((size, size), sys.argv[1]); c = np.empty_like(a)
    for _ in range(3):
        start = time.perf_counter(); np.dot(a, a, out=c); seconds = time.perf_counter() - start
        best = max(best, 2 * size**3 / seconds)
print(best)
"""


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ceilings", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="of all rounds together")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    with device_lock("cpu"), tempfile.TemporaryDirectory(prefix="km-") as cache:
        # Figures of this moment: the user's cache keeps the best that were ever found since the boot.
        os.environ["XDG_CACHE_HOME"] = cache
        server = ForkServer(preload=PRELOAD)
        found = ceiling_measurement.measured_again(
            server, ceiling_measurement.CeilingsDevice("cpu", "benchmark", Path(cache))
        )
        server.close()
        CpuTimer(flush_cache=False).prepare()
        _raise_threads()
        share_openmp()
        library = built(Path(cache))
        # From now on a sample of ours is one, as long as it is asked for.
        ctypes.c_int64.in_dll(library, "ceilings_samples").value = 1
        bench = _Bench(found, library)
        compared, alone = [*_products(found)], []
        if likwid.missing() is None:
            compared += [*bench.streams(), *bench.vectors()]
            alone = [*bench.alone()]
        rows = sampled([*compared, *alone], options.seconds)
    page = _page(rows[: len(compared)], rows[len(compared) :], found, options.seconds)
    options.out.write_text("\n".join(page) + "\n")
    print(options.out.read_text())


def _raise_threads() -> None:
    """NumPy's threads were there before this process was given its priority: they would starve beside it."""
    for thread in Path("/proc/self/task").iterdir():
        os.setpriority(os.PRIO_PROCESS, int(thread.name), os.getpriority(os.PRIO_PROCESS, 0))


def _products(found: DeviceCeilings) -> Iterator[Quantity]:
    """Matrix products beside NumPy in a process of its own, with the environment's threads."""
    for dtype in PRODUCT_DTYPES:
        yield Quantity(
            name=f"matrix product, {dtype}",
            tool="NumPy",
            unit="GFLOP/s",
            ours=_between_pauses(functools.partial(peak_of, dtype, found.matrix_library[dtype])),
            theirs=_between_pauses(functools.partial(_numpy, dtype)),
            pipeline=found.matrix_flops[dtype],
        )


def _between_pauses(sample: Sample) -> Sample:
    """Threads of one library spin for some 30 ms, and take the cores from those of another one."""

    def wrapped() -> float:
        time.sleep(PAUSE)
        value = sample()
        time.sleep(PAUSE)
        return value

    return wrapped


def _numpy(dtype: str) -> float:
    command = [sys.executable, "-c", PRODUCT, dtype]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class _Bench:
    """What likwid-bench has a kernel for, on the working sets of the pipeline's ceilings."""

    def __init__(self, found: DeviceCeilings, library: ctypes.CDLL) -> None:
        self._found = found
        self._library = library
        self._arrays = Arrays(library)
        self._features = read_machine().cpu.features
        self._cores = len(usable_cores())

    def streams(self) -> Iterator[Quantity]:
        """Streams in each level of the memory."""
        for (series, level), size in working_sets(self._found).items():
            if series == "copy":
                ways: list[Sample] = [
                    self._ours(series, size, functools.partial(self._arrays.copy, size // 2, way))
                    for way in COPY_WAYS
                ]
                yield self._stream(f"copy, {level}", series, size, ways, COPY_KERNELS)
            elif series == "triad":
                plain, past = (
                    self._ours(series, size, functools.partial(self._arrays.triad, size // 3, way))
                    for way in ("ordinary stores", "past the caches")
                )
                yield self._stream(f"triad, {level}", series, size, [plain, past], TRIAD_KERNELS)
                if level == self._found.levels[-1].name:
                    name = f"triad, ordinary stores, {level}"
                    row = self._stream(name, series, size, [plain], TRIAD_KERNELS[:1])
                    yield row._replace(pipeline=at(self._found.triad_plain, size))
            else:
                for places, kernel in READ_KERNELS.items():
                    name = f"read, {places} place{'s' * (places > 1)}, {level}"
                    yield self._stream(name, series, size, [self._reading(size, places)], (kernel,))

    def alone(self) -> Iterator[Quantity]:
        """Ours against ours: more places at once than any kernel of likwid's reads, and shorter samples."""
        for (series, level), size in working_sets(self._found).items():
            if series == "read":
                yield Quantity(
                    name=f"reading from {MORE_PLACES} places, {level}",
                    tool="from one",
                    unit="GB/s",
                    ours=self._reading(size, MORE_PLACES),
                    theirs=self._reading(size, 1),
                )
        size = working_sets(self._found)[("read", self._found.levels[-1].name)]
        short = functools.partial(self._arrays.read, size, MORE_PLACES, 0.0)
        yield Quantity(
            name=f"the same, {self._found.levels[-1].name}, the better of two traversals",
            tool=f"as the mean of {TRAVERSALS} or more",
            unit="GB/s",
            ours=self._as_long(0.0, short),
            theirs=self._reading(size, MORE_PLACES),
        )

    def vectors(self) -> Iterator[Quantity]:
        """Peaks of the vector unit."""
        for dtype, name in PEAKS.items():
            kernel = likwid.widest(name, self._features)
            peak = self._found.vector_flops[dtype]
            flops = FLOPS_SIZE / FLOPS_ELEMENT[dtype] * likwid.flops_per_element(kernel)
            iterations = int(FLOPS_SECONDS * peak / self._cores / flops)
            function = getattr(self._library, f"ceilings_vector_{dtype}")
            yield Quantity(
                name=f"multiply-adds, {dtype}",
                tool=f"likwid-bench {kernel}",
                unit="GFLOP/s",
                ours=self._as_long(FLOPS_SECONDS, functools.partial(function, 0.0)),
                theirs=likwid.Run(
                    kernel, size=FLOPS_SIZE * self._cores, cores=self._cores, iterations=iterations
                ),
                pipeline=peak,
            )

    def _stream(
        self, name: str, series: str, size: int, ways: Sequence[Sample], kernels: Sequence[str]
    ) -> Quantity:
        """Each side by its fastest way."""
        runs = {
            kernel: likwid.Run(kernel, size=size, cores=self._cores, iterations=traversals(size))
            for kernel in (likwid.widest(each, self._features) for each in kernels)
        }
        kernel = fastest(runs)
        return Quantity(
            name=name,
            tool=f"likwid-bench {kernel}",
            unit="GB/s",
            ours=ways[fastest(dict(enumerate(ways)))],
            theirs=runs[kernel],
            pipeline=at(getattr(self._found, series), size),
        )

    def _reading(self, size: int, places: int) -> Sample:
        return self._ours("read", size, functools.partial(self._arrays.read, size, places))

    def _ours(self, series: str, size: int, sample: Callable[[float], float]) -> Sample:
        """A sample over as many bytes as a run of theirs."""
        seconds = traversals(size) * size / at(getattr(self._found, series), size)
        return self._as_long(seconds, functools.partial(sample, 0.0))

    def _as_long(self, seconds: float, sample: Sample) -> Sample:
        def timed() -> float:
            ctypes.c_double.in_dll(self._library, "ceilings_sample_seconds").value = seconds
            return sample()

        return timed


def traversals(size: int) -> int:
    """Of a working set of so many bytes, in one sample."""
    return max(TRAVERSALS, int(BYTES_PER_RUN / size))


def working_sets(found: DeviceCeilings) -> dict[tuple[str, str], int]:
    """Series and level -> bytes: half of a cache, so that both ends of the level are far; all of the last."""
    sets: dict[tuple[str, str], int] = {}
    for series in SERIES:
        points = getattr(found, series)
        for level in found.levels:
            inside = [
                point.working_set for point in points if level_of(found.levels, point.working_set) == level
            ]
            if inside:
                goal = inside[-1] if level.capacity is None else level.capacity / 2
                sets[(series, level.name)] = min(inside, key=lambda size: abs(size - goal))
    return sets


def loads_per_operation(found: DeviceCeilings) -> str:
    """What reading from the nearest cache should be by the vector unit's rate, whatever the clock is."""
    level = found.levels[0].name
    rate, flops = at(found.read, working_sets(found)[("read", level)]), found.vector_flops["float32"]
    return (
        f"A check without another tool: {level} is read at {rate / 1e9:.1f} GB/s, and float32 is "
        f"multiplied and added at {flops / 1e9:.1f} GFLOP/s (column *pipeline*): {rate / flops:.2f} bytes "
        "per operation. A processor that loads as many vectors per cycle as it multiplies and adds has 2."
    )


def _page(compared: list[Row], alone: list[Row], found: DeviceCeilings, seconds: float) -> Iterator[str]:
    tools = (likwid.version(),) if likwid.missing() is None else ()
    yield "# Ceilings compared with other tools\n"
    rounds = len(compared[0].ours)
    yield f"Written by `python -m tests.benchmarks.ceilings --seconds {seconds:g}`: {rounds} rounds."
    yield where(("numpy", "torch"), tools=tools) + "\n"
    yield INTRODUCTION
    yield from table(compared)
    reason = likwid.missing()
    if reason:
        yield f"\nLeft out: {reason}."
    if alone:
        yield "\nOur own variants, in the same rounds:\n"
        yield from gains(alone)
    yield "\n" + loads_per_operation(found)
    libraries = ", ".join(f"{dtype} {name}" for dtype, name in found.matrix_library.items())
    yield f"\nMatrix products use the faster library: {libraries}."


if __name__ == "__main__":
    main()
