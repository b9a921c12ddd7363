"""Our ceilings of this machine against independent tools, as docs/results/ceilings.md.

    python -m tests.benchmarks.ceilings [--rounds 5]

In each round our ceilings are measured anew, then likwid-bench runs its own kernels on the same working sets,
and NumPy multiplies matrices in a process of its own. Ceilings are the best of many samples on both sides, so
the best of all rounds are compared. Run it on a quiet machine; where a tool is missing its rows are left out,
with the reason.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.config.machine import read_machine
from pipeline.measure import ceilings
from pipeline.measure.bench import PRELOAD
from pipeline.measure.device_ceilings import DeviceCeilings, at, better, level_of
from pipeline.measure.lock import device_lock
from pipeline.measure.processor import usable_cores
from pipeline.records.record import Record
from pipeline.workers.sandbox import ForkServer
from tests.benchmarks import likwid
from tests.benchmarks.machine import where

TARGET = Path(__file__).parents[2] / "docs" / "results" / "ceilings.md"
TOLERANCE = 0.10
STREAMS = {
    "copy": ("copy", "copy_mem"),
    "read": ("load",),
    "triad": ("stream", "stream_mem"),
    "triad_plain": ("stream",),
}
LIKWID = "likwid-bench"
PEAKS = {"float32": "peakflops_sp", "float64": "peakflops"}
BYTES_PER_RUN = 2e9  # of one run of likwid-bench in a cache: some milliseconds
TRAVERSALS = 3  # of arrays beyond the caches
RUNS = 2  # of each of its kernels in a round
FLOPS_SIZE = 16_000  # bytes that its peak kernels load over and over
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
Best of all rounds on both sides, ours and theirs in turn. Bandwidth as STREAM counts it: the bytes of the
arrays, no write-allocate; 1 GB = 1e9 B. likwid-bench's kernels are written in assembly; where it has one with
ordinary stores and one that writes past the caches, the faster counts, as with ours. *First round* is the
share of our figure that a single measurement had reached.
"""


class Row(Record, frozen=True, kw_only=True):
    """One quantity."""

    name: str
    tool: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours / self.theirs


Others = dict[tuple[str, str], float]
"""Quantity and tool -> the best so far."""


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ceilings", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    server = ForkServer(preload=PRELOAD)
    found: DeviceCeilings | None = None
    first: DeviceCeilings | None = None
    others: Others = {}
    with device_lock("cpu"), tempfile.TemporaryDirectory(prefix="km-") as cache:
        for number in range(options.rounds):
            now = ceilings.measured_again(server, "cpu", "benchmark", Path(cache) / str(number))
            found = now if found is None else better(found, now)
            first = first or now
            _merge(others, _numpy())
            if likwid.missing() is None:
                _merge(others, _likwid(found))
    server.close()
    assert found is not None and first is not None
    TARGET.write_text("\n".join(_page(_rows(found, others), _rows(first, others), found, options.rounds)))
    print(TARGET.read_text())


def _merge(best: Others, now: Others) -> None:
    for key, value in now.items():
        best[key] = max(value, best.get(key, 0.0))


def _numpy() -> Others:
    """In a process of its own, with the environment's threads."""
    done = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, text=True, check=True)
    return {(f"matrix product, {name}", "NumPy"): flops for name, flops in json.loads(done.stdout).items()}


def _likwid(found: DeviceCeilings) -> Others:
    """Each stream in each level of the memory, and the vector peaks."""
    features, cores = read_machine().cpu.features, len(usable_cores())
    best: Others = {}
    for _ in range(RUNS):
        for (series, level), size in _working_sets(found).items():
            last = level == found.levels[-1].name
            traversals = TRAVERSALS if last else max(10, int(BYTES_PER_RUN / size))
            for name in STREAMS[series]:
                kernel = likwid.widest(name, features)
                rate = likwid.rate(kernel, size=size, cores=cores, iterations=traversals)
                _merge(best, {(_stream_name(series, level), LIKWID): rate})
        for dtype, name in PEAKS.items():
            kernel = likwid.widest(name, features)
            flops = likwid.rate(kernel, size=FLOPS_SIZE * cores, cores=cores, iterations=100_000)
            _merge(best, {(f"multiply-adds, {dtype}", LIKWID): flops})
    return best


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


def _rows(found: DeviceCeilings, others: Others) -> list[Row]:
    ours = {
        _stream_name(series, level): at(getattr(found, series), size)
        for (series, level), size in _working_sets(found).items()
    }
    ours |= {f"multiply-adds, {dtype}": flops for dtype, flops in found.vector_flops.items()}
    ours |= {f"matrix product, {dtype}": flops for dtype, flops in found.matrix_flops.items()}
    return [
        Row(name=name, tool=tool, ours=ours[name], theirs=theirs) for (name, tool), theirs in others.items()
    ]


def _page(rows: list[Row], first: list[Row], found: DeviceCeilings, rounds: int) -> Iterator[str]:
    within = sum(abs(row.ratio - 1) <= TOLERANCE for row in rows)
    yield "# Ceilings of this machine against independent tools\n"
    yield f"Written by `python -m tests.benchmarks.ceilings --rounds {rounds}`."
    yield where(("numpy", "torch"), tools=(likwid.version(),) if likwid.missing() is None else ()) + "\n"
    yield INTRODUCTION
    yield "| quantity | tool | ours | theirs | ours / theirs | within 10 % | first round |"
    yield "|---|---|---:|---:|---:|---|---:|"
    once = {(row.name, row.tool): row.ours for row in first}
    for row in sorted(rows, key=lambda row: (row.tool, "," not in row.name, row.name)):
        unit = "GB/s" if row.tool == LIKWID and "multiply" not in row.name else "GFLOP/s"
        verdict = "yes" if abs(row.ratio - 1) <= TOLERANCE else "**no**"
        yield (
            f"| {row.name} | {row.tool} | {row.ours / 1e9:.1f} {unit} | {row.theirs / 1e9:.1f} {unit} | "
            f"{row.ratio:.2f} | {verdict} | {once[(row.name, row.tool)] / row.ours:.0%} |"
        )
    reason = likwid.missing()
    yield f"\n{within} of {len(rows)} quantities agree within 10 %." + (
        f" Left out: {reason}." if reason else ""
    )
    libraries = ", ".join(f"{dtype} {name}" for dtype, name in found.matrix_library.items())
    yield f"Our matrix products are those of the faster library: {libraries}.\n"


if __name__ == "__main__":
    main()
