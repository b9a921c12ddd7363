"""What bounds one problem: the device's ceilings and the problem's traffic in, its own ceilings out."""

import msgspec

from pipeline.backends.devices.device_ceilings import PRODUCTS, DeviceCeilings, at, level_bandwidth, level_of
from pipeline.records.record import Record
from pipeline.records.results.profiled import Ceilings, LevelCeiling

TF32_PRODUCTS = 3
"""Products of tf32 that make one of (nearly) float32: the way around a missing float32 matrix unit."""
HALVES = ("float16", "bfloat16")
FALLBACK = "float32"
"""Counts for dtypes without a product of their own. Libraries have floats on all devices, integers not."""


class Traffic(Record, frozen=True, kw_only=True):
    """Compulsory bytes of one call."""

    read: float
    written: float


def of_problem(device: DeviceCeilings, traffic: Traffic, dtype: str, *, in_graph: bool = False) -> Ceilings:
    """What bounds a problem of this traffic: its bytes are its working set.

    `in_graph`: many of its calls are recorded in one graph.
    """
    size = traffic.read + traffic.written
    return Ceilings(
        copy_bandwidth=device.copy[-1].bandwidth,
        read_bandwidth=device.read[-1].bandwidth,
        triad_bandwidth=device.triad[-1].bandwidth,
        cache_bandwidth=_mixed(device, traffic),
        level=level_of(device.levels, size).name,
        levels=tuple(
            LevelCeiling(name=level.name, capacity=level.capacity, bandwidth=bandwidth)
            for level in device.levels
            if (bandwidth := level_bandwidth(device.copy, device.levels, level)) is not None
        ),
        matrix_flops=_matrix(device, dtype),
        vector_flops=_vector(device, dtype),
        launch_seconds=device.launch(in_graph=in_graph),
    )


def products_of(dtype: str) -> tuple[str, ...]:
    """The matrix products that `of_problem` looks at."""
    if dtype not in PRODUCTS:
        return (FALLBACK,)
    return (dtype,) if dtype.startswith(("float", "bfloat")) else (FALLBACK, dtype)


def beyond_caches(device: DeviceCeilings) -> DeviceCeilings:
    """What bounds calls that find nothing of their data in a cache."""
    return msgspec.structs.replace(
        device,
        copy=device.copy[-1:],
        read=device.read[-1:],
        triad=device.triad[-1:],
        triad_plain=device.triad_plain[-1:],
        levels=device.levels[-1:],
    )


def _mixed(device: DeviceCeilings, traffic: Traffic) -> float:
    """Bandwidth of a mix of reads and writes at its working set.

    A copy of n bytes takes n / read + n / write seconds and 2 n / copy by definition, which gives the time of
    a written byte, and so does a triad, with two reads; the shorter time counts. A kernel that mostly reads
    (a matrix-vector product) may be faster than any copy.
    """
    total = traffic.read + traffic.written
    copy, triad = at(device.copy, total), at(device.triad, total)
    read = max(at(device.read, total), copy)  # a disturbed sample apart, reading is never the slower
    second_per_read = 1 / read
    # Nor is writing twice as fast as reading: a disturbed sample of the triad says even less than no time.
    second_per_write = max(
        second_per_read / 2, min(2 / copy - second_per_read, 3 / triad - 2 * second_per_read)
    )
    return total / (traffic.read * second_per_read + traffic.written * second_per_write)


def _matrix(device: DeviceCeilings, dtype: str) -> float:
    """The library's product; of float32 the detour over tf32 counts as well, of an unknown dtype float32."""
    found = device.matrix_flops
    plain = found[dtype if dtype in found else FALLBACK]
    return max(plain, found.get("tf32", 0.0) / TF32_PRODUCTS) if dtype == "float32" else plain


def _vector(device: DeviceCeilings, dtype: str) -> float:
    """Kernels compute halves in float32, or in halves where the unit has them; other dtypes in themselves."""
    found = device.vector_flops
    if dtype in HALVES:
        return max(found["float32"], found.get(dtype, 0.0))
    return found.get(dtype, found["float32"])
