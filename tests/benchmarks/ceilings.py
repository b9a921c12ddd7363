"""Our ceilings of this machine against independent tools, as docs/results/ceilings.md.

    python -m tests.benchmarks.ceilings [--rounds 12]

Our ceilings are measured as the pipeline does it. Then every quantity is taken alone: in each round the
pipeline's own function samples it, and right before or after that likwid-bench runs its kernel on the same
working set, or NumPy multiplies matrices; the rounds' ratios are compared. Run it on a quiet machine; where a
tool is missing its rows are left out, with the reason.
"""

import argparse
import ctypes
import functools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.backends.cpp.launch import share_openmp
from pipeline.config.machine import read_machine
from pipeline.measure import ceilings, ceilings_cpu, statistics
from pipeline.measure.bench import PRELOAD
from pipeline.measure.device_ceilings import DeviceCeilings, at, level_of
from pipeline.measure.lock import device_lock
from pipeline.measure.matrix_peaks import matrix_peaks
from pipeline.measure.processor import usable_cores
from pipeline.measure.timer_cpu import CpuTimer
from pipeline.records.profiled import Interval
from pipeline.records.record import Record
from pipeline.workers.sandbox import ForkServer
from tests.benchmarks import likwid
from tests.benchmarks.machine import where

TARGET = Path(__file__).parents[2] / "docs" / "results" / "ceilings.md"
TOLERANCE = 0.10
CONFIDENCE = 0.95
STREAMS = {
    "copy": ("copy", "copy_mem"),
    "read": ("load",),
    "triad": ("stream", "stream_mem"),
    "triad_plain": ("stream",),
}
LIKWID = "likwid-bench"
PEAKS = {"float32": "peakflops_sp", "float64": "peakflops"}
BYTES_PER_RUN = 5e9  # of one run of likwid-bench in a cache: some tens of milliseconds,
TRAVERSALS = 20  # and beyond the caches: in shorter runs the start of its threads shows
FLOPS_SIZE = 16_000  # bytes that its peak kernels load over and over
PRODUCT_DTYPES = ("float32", "float64")
PRODUCT = """
import json, time, numpy as np
best = {}
for name in ("float32", "float64"):
    for size in (512, 1024, 2048):
        a = np.ones((size, size), name); c = np.empty_like(a)
        for _ in range(4):
            start = time.perf_counter(); np.dot(a, a, out=c); seconds = time.perf_counter() - start
            best[name] = max(best.get(name, 0.0), 2 * size**3 / seconds)
print(json.dumps(best))
"""
INTRODUCTION = """\
Each quantity is taken alone: in every round ours is sampled as the pipeline does, and the other tool right
before or after it. *Ours* and *theirs* are the best of all rounds; *ours / theirs* is the median of the
rounds' ratios with a bootstrap interval of 95 %. The bests are not compared: memory that a virtual machine
shares with others changes its bandwidth up to twofold from one second to the next, and who meets the best
second is luck. Bandwidth as STREAM counts it: the bytes of the arrays, no write-allocate; 1 GB = 1e9 B.
likwid-bench's kernels are written in assembly; where it has one with ordinary stores and one that writes past
the caches, the faster counts, as with ours. It says the mean of a run, so a sample of ours is as long as its
runs. *Pipeline* is what the pipeline's own measurement of the ceilings, a few seconds in all, had found right
before, as the best of samples of about a millisecond: short ones more often fall between two disturbances.
"""


class Quantity(NamedTuple):
    """What both sides can measure; larger is better."""

    name: str
    tool: str
    ours: Callable[[], float]
    theirs: Callable[[], float]
    pipeline: float
    """As the pipeline found it."""


class Row(Record, frozen=True, kw_only=True):
    """One quantity, a pair of samples for each round."""

    name: str
    tool: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    pipeline: float

    @property
    def ratio(self) -> Interval:
        """Median of the rounds' ratios, ours over theirs."""
        ratios = [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        return statistics.median(ratios, CONFIDENCE)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ceilings", description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    server = ForkServer(preload=PRELOAD)
    with device_lock("cpu"), tempfile.TemporaryDirectory(prefix="km-") as cache:
        found = ceilings.measured_again(server, ceilings.Device("cpu", "benchmark", Path(cache)))
        server.close()
        CpuTimer(flush_cache=False).prepare()
        share_openmp()
        library = ceilings_cpu._library(Path(cache))
        arrays = ceilings_cpu._Arrays(library)
        rows = [_sampled(each, options.rounds) for each in _quantities(found, library, arrays)]
    TARGET.write_text("\n".join(_page(rows, found, options.rounds)))
    print(TARGET.read_text())


def _sampled(quantity: Quantity, rounds: int) -> Row:
    """Ours and theirs in turn; a coin decides who begins."""
    found: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(rounds):
        for side in random.sample(sorted(found), 2):
            time.sleep(ceilings_cpu.PAUSE)  # threads of the other one spin for a while
            found[side].append(getattr(quantity, side)())
    return Row(
        name=quantity.name,
        tool=quantity.tool,
        pipeline=quantity.pipeline,
        ours=tuple(found["ours"]),
        theirs=tuple(found["theirs"]),
    )


def _quantities(
    found: DeviceCeilings, library: ctypes.CDLL, arrays: ceilings_cpu._Arrays
) -> Iterator[Quantity]:
    """Matrix products beside NumPy, streams in each level of the memory and vector peaks beside likwid."""
    for dtype in PRODUCT_DTYPES:
        yield Quantity(
            name=f"matrix product, {dtype}",
            tool="NumPy",
            ours=lambda dtype=dtype: matrix_peaks()[dtype][0],
            theirs=lambda dtype=dtype: _numpy()[dtype],
            pipeline=found.matrix_flops[dtype],
        )
    if likwid.missing() is None:
        yield from _streams(found, library, arrays)
        yield from _vectors(found, library)


def _numpy() -> dict[str, float]:
    """FLOP/s by dtype, in a process of its own with the environment's threads."""
    done = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, text=True, check=True)
    flops: dict[str, float] = json.loads(done.stdout)
    return flops


def _streams(found: DeviceCeilings, library: ctypes.CDLL, arrays: ceilings_cpu._Arrays) -> Iterator[Quantity]:
    features, cores = read_machine().cpu.features, len(usable_cores())
    for (series, level), size in _working_sets(found).items():
        last = level == found.levels[-1].name
        traversals = TRAVERSALS if last else max(10, int(BYTES_PER_RUN / size))

        def theirs(series: str = series, size: int = size, traversals: int = traversals) -> float:
            kernels = [likwid.widest(name, features) for name in STREAMS[series]]
            return max(likwid.rate(each, size=size, cores=cores, iterations=traversals) for each in kernels)

        pipeline = at(getattr(found, series), size)
        yield Quantity(
            name=_stream_name(series, level),
            tool=LIKWID,
            ours=functools.partial(_stream, library, arrays, series, size, traversals * size / pipeline),
            theirs=theirs,
            pipeline=pipeline,
        )


def _stream(
    library: ctypes.CDLL, arrays: ceilings_cpu._Arrays, series: str, size: int, seconds: float
) -> float:
    """Bytes per second over a working set, as `ceilings_cpu` samples it, in samples of so many seconds."""
    a, b, c = arrays.pointers
    _sample(library, seconds)
    if series == "copy":
        return float(library.ceilings_copy(b, a, size // 2, seconds))
    if series == "read":
        return float(library.ceilings_read(b, size, seconds))
    ways = (0, 1) if series == "triad" else (0,)
    return max(float(library.ceilings_triad(a, b, c, size // 3, way, seconds)) for way in ways)


def _sample(library: ctypes.CDLL, seconds: float) -> None:
    """From now on a sample takes so long."""
    ctypes.c_double.in_dll(library, "ceilings_sample_seconds").value = seconds


def _vectors(found: DeviceCeilings, library: ctypes.CDLL) -> Iterator[Quantity]:
    features, cores = read_machine().cpu.features, len(usable_cores())
    _sample(library, ceilings_cpu.VECTOR_SECONDS)
    for dtype, name in PEAKS.items():
        kernel = likwid.widest(name, features)
        yield Quantity(
            name=f"multiply-adds, {dtype}",
            tool=LIKWID,
            ours=functools.partial(getattr(library, f"ceilings_vector_{dtype}"), ceilings_cpu.VECTOR_SECONDS),
            theirs=functools.partial(
                likwid.rate, kernel, size=FLOPS_SIZE * cores, cores=cores, iterations=100_000
            ),
            pipeline=found.vector_flops[dtype],
        )


def _working_sets(found: DeviceCeilings) -> dict[tuple[str, str], int]:
    """Series and level -> bytes: half of a cache, so that both ends of the level are far; all of the last."""
    sets: dict[tuple[str, str], int] = {}
    for series in STREAMS:
        points = getattr(found, series)
        for level in found.levels:
            inside = [
                point.working_set for point in points if level_of(found.levels, point.working_set) == level
            ]
            if inside:
                goal = inside[-1] if level.capacity is None else level.capacity / 2
                sets[(series, level.name)] = min(inside, key=lambda size: abs(size - goal))
    return sets


def _stream_name(series: str, level: str) -> str:
    what = {"triad_plain": "triad, ordinary stores"}.get(series, series)
    return f"{what}, {level}"


def _page(rows: list[Row], found: DeviceCeilings, rounds: int) -> Iterator[str]:
    within = sum(abs(row.ratio.value - 1) <= TOLERANCE for row in rows)
    yield "# Ceilings of this machine against independent tools\n"
    yield f"Written by `python -m tests.benchmarks.ceilings --rounds {rounds}`."
    yield where(("numpy", "torch"), tools=(likwid.version(),) if likwid.missing() is None else ()) + "\n"
    yield INTRODUCTION
    yield "| quantity | tool | ours | theirs | ours / theirs | within 10 % | pipeline |"
    yield "|---|---|---:|---:|---:|---|---:|"
    for row in sorted(rows, key=lambda row: (row.tool, "," not in row.name, row.name)):
        unit = "GB/s" if row.tool == LIKWID and "multiply" not in row.name else "GFLOP/s"
        ratio = row.ratio
        verdict = "yes" if abs(ratio.value - 1) <= TOLERANCE else "**no**"
        ours, theirs, pipeline = (
            f"{each / 1e9:.1f} {unit}" for each in (max(row.ours), max(row.theirs), row.pipeline)
        )
        shown = f"{ratio.value:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"
        yield f"| {row.name} | {row.tool} | {ours} | {theirs} | {shown} | {verdict} | {pipeline} |"
    reason = likwid.missing()
    yield f"\n{within} of {len(rows)} quantities agree within 10 %." + (
        f" Left out: {reason}." if reason else ""
    )
    libraries = ", ".join(f"{dtype} {name}" for dtype, name in found.matrix_library.items())
    yield f"Our matrix products are those of the faster library: {libraries}.\n"


if __name__ == "__main__":
    main()
