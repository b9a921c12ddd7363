"""What one device reaches: figures of some measurements in, the best of them by level of the memory out.

A ceiling is the best of several samples: disturbances only lower it, so measuring again and keeping the
better figure brings it closer to the truth.
"""

import math

import msgspec

from pipeline.records.record import Record

SERIES = ("copy", "read", "triad", "triad_plain")
PRODUCTS = ("bfloat16", "float16", "float32", "float64", "int8")
"""Dtypes of the matrix products that can be measured, each when it is first needed."""
BASE = "base"
"""The part that all problems need: bandwidths, the vector unit and calls that do nothing."""

Notes = dict[str, tuple[str, ...]]
"""Part -> what disturbed it, a sentence each."""


class Point(Record, frozen=True, kw_only=True):
    """Bandwidth of one working set."""

    working_set: int
    """Bytes of all arrays that take part."""
    bandwidth: float
    """Bytes per second of the arrays, read plus written, as STREAM counts: what a cache fetches before it is
    overwritten (write-allocate) is not in it."""


class Level(Record, frozen=True, kw_only=True):
    """One level of the memory, of all cores that take part together."""

    name: str
    """`L1`, `L2`, `L3`, `DRAM`."""
    capacity: int | None = None
    """Bytes; None for the last level."""


class DeviceCeilings(Record, frozen=True, kw_only=True):
    """What one device reaches."""

    copy: tuple[Point, ...]
    """By growing working set, as the others; the last is far larger than every cache."""
    read: tuple[Point, ...]
    triad: tuple[Point, ...]
    """a[i] = b[i] + s * c[i], by whichever kind of store is faster."""
    triad_plain: tuple[Point, ...] = ()
    """The same by ordinary stores, which fetch the line first: beyond the caches, 4/3 of it cross the bus.
    Empty where the device has one kind of store."""
    levels: tuple[Level, ...]
    """From the nearest to the last."""
    matrix_flops: dict[str, float]
    """FLOP/s (int8: OP/s) of the vendor library's matrix product, by dtype; `tf32` are float32 tensors. Of
    the measured dtypes those that the device and its library have."""
    matrix_library: dict[str, str]
    """Which library gave each."""
    vector_flops: dict[str, float]
    """FLOP/s of independent fused multiply-adds, by dtype; those that the vector unit has."""
    launch_seconds: dict[str, float]
    """Time of a call that does nothing: on a CPU `call` (through the path of a C++ kernel) and `region` (a
    parallel region), on a GPU `stream`, `graph` (one node of a CUDA graph) and `synchronised`."""
    parts: Notes
    """What was measured, `BASE` and dtypes of products, and what else ran on the machine whenever it was, a
    sentence each."""

    @property
    def disturbed(self) -> tuple[str, ...]:
        """What else ran on the machine when some part was measured."""
        return tuple(dict.fromkeys(note for notes in self.parts.values() for note in notes))

    def lacks(self, products: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the products that were not measured."""
        return tuple(each for each in products if each not in self.parts)

    def launch(self, *, in_graph: bool = False) -> float | None:
        """Least seconds of a call that uses the whole device, back to back or many in one graph."""
        found = self.launch_seconds
        if "stream" in found:
            return found["graph" if in_graph and "graph" in found else "stream"]
        return found["call"] + found["region"] if {"call", "region"} <= found.keys() else None


def better(one: DeviceCeilings, other: DeviceCeilings) -> DeviceCeilings:
    """The better figure of each pair; the levels of the first."""
    matrix = _higher(one.matrix_flops, other.matrix_flops)
    return DeviceCeilings(
        copy=_upper(one.copy, other.copy),
        read=_upper(one.read, other.read),
        triad=_upper(one.triad, other.triad),
        triad_plain=_upper(one.triad_plain, other.triad_plain),
        levels=one.levels,
        matrix_flops=matrix,
        matrix_library={
            dtype: (one if one.matrix_flops.get(dtype) == flops else other).matrix_library[dtype]
            for dtype, flops in matrix.items()
        },
        vector_flops=_higher(one.vector_flops, other.vector_flops),
        launch_seconds={
            name: min(each[name] for each in (one.launch_seconds, other.launch_seconds) if name in each)
            for name in sorted(one.launch_seconds.keys() | other.launch_seconds.keys())
        },
        parts=_quieter(one.parts, other.parts),
    )


def with_products(device: DeviceCeilings, peaks: dict[str, tuple[float, str]]) -> DeviceCeilings:
    """With further matrix products: dtype -> FLOP/s and the library that reached it."""
    return msgspec.structs.replace(
        device,
        matrix_flops=device.matrix_flops | {name: flops for name, (flops, _) in peaks.items()},
        matrix_library=device.matrix_library | {name: who for name, (_, who) in peaks.items()},
    )


def gain(before: DeviceCeilings, after: DeviceCeilings) -> float:
    """By how much the figure that improved most did so, relative."""
    ratios = [1.0]
    for series in SERIES:
        old = {point.working_set: point.bandwidth for point in getattr(before, series)}
        ratios += [
            point.bandwidth / old[point.working_set]
            for point in getattr(after, series)
            if point.working_set in old
        ]
    for field in ("matrix_flops", "vector_flops"):
        mine, theirs = getattr(before, field), getattr(after, field)
        ratios += [theirs[name] / mine[name] for name in mine.keys() & theirs.keys()]
    return max(ratios) - 1


def envelope(points: list[tuple[int, float]]) -> tuple[Point, ...]:
    """Points by growing working set, each at least as fast as all larger ones.

    A smaller working set cannot be slower to stream over; where the samples say so, something disturbed them.
    """
    best = 0.0
    found = []
    for size, bandwidth in sorted(points, reverse=True):
        best = max(best, bandwidth)
        found.append(Point(working_set=size, bandwidth=best))
    return tuple(reversed(found))


def at(points: tuple[Point, ...], size: float) -> float:
    """Bandwidth at the largest measured working set that is not larger: never too low a ceiling."""
    smaller = [point for point in points if point.working_set <= size]
    return (smaller[-1] if smaller else points[0]).bandwidth


def level_of(levels: tuple[Level, ...], size: float) -> Level:
    """The nearest level that holds so many bytes."""
    return next(level for level in levels if level.capacity is None or size <= level.capacity)


def level_bandwidth(points: tuple[Point, ...], levels: tuple[Level, ...], level: Level) -> float | None:
    """What is typical of a level; None where no measured working set lies in it.

    Near its capacity a level shares the work with the next one, and just above the capacity of the one before
    with that: so the working set in the (geometric) middle counts. Of the nearest level that is the best, of
    the last one the largest working set.
    """
    inside = [point for point in points if level_of(levels, point.working_set) == level]
    if not inside:
        return None
    place = levels.index(level)
    if place == 0 and level.capacity is not None:
        return inside[0].bandwidth
    if level.capacity is None:
        return inside[-1].bandwidth
    below = levels[place - 1].capacity or 1
    middle = math.log(below * level.capacity) / 2
    return min(inside, key=lambda point: abs(math.log(point.working_set) - middle)).bandwidth


def sizes(smallest: int, largest: int) -> list[int]:
    """Powers of two between two working sets, both included."""
    low, high = math.ceil(math.log2(smallest)), math.ceil(math.log2(largest))
    return [1 << exponent for exponent in range(low, high + 1)]


def _upper(one: tuple[Point, ...], other: tuple[Point, ...]) -> tuple[Point, ...]:
    both = {point.working_set: point.bandwidth for point in one}
    for point in other:
        both[point.working_set] = max(point.bandwidth, both.get(point.working_set, 0.0))
    return envelope(list(both.items()))


def _higher(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {
        name: max(each[name] for each in (one, other) if name in each)
        for name in sorted(one.keys() | other.keys())
    }


def _quieter(one: Notes, other: Notes) -> Notes:
    """A part that was measured twice is disturbed if it was both times."""
    twice = one.keys() & other.keys()
    return one | other | {part: one[part] if other[part] else () for part in twice}
