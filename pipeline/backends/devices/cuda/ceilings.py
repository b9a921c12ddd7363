"""Ceilings of a GPU, through torch and small Triton kernels. Imported only where a GPU measures."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence

import torch
import triton
import triton.language as tl

from pipeline.backends.devices.cuda.timer import CudaTimer
from pipeline.backends.devices.device import CannotRecord
from pipeline.backends.devices.device_ceilings import DeviceCeilings, Level, envelope, sizes, with_products

DEVICE = "cuda"
SMALLEST = 1 << 20  # bytes of one array; below it a launch costs more than the work
LARGEST = 2 << 30
SAMPLES = 10
CALLS = 5
LONG_CALL = 0.05  # seconds; a product in float64 takes one where the device has few units for it
SHORT_CALL = 100e-6  # seconds; a copy within the L2 cache takes less than its launch
MATRIX_SIZE = 8192
MATRIX_DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
VECTOR_DTYPES = MATRIX_DTYPES
ACCUMULATORS = 8
STEPS = 2048
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 32
TRIAD_BLOCK = 1024
LAUNCHES = 200  # empty kernels in one sample, and in one graph

Points = list[tuple[int, float]]


def measure(products: tuple[str, ...], known: DeviceCeilings | None) -> DeviceCeilings:
    """What is not `known`, and these matrix products."""
    timer = CudaTimer(flush_cache=False)
    timer.prepare()
    base = _base(timer) if known is None else known
    return with_products(
        base, {name: (flops, "torch") for name, flops in _matrix_peaks(timer, products).items()}
    )


def _base(timer: CudaTimer) -> DeviceCeilings:
    """All but the matrix products."""
    streams = _streams(timer)
    return DeviceCeilings(
        copy=envelope(streams["copy"]),
        read=envelope(streams["read"]),
        triad=envelope(streams["triad"]),
        levels=_levels(),
        matrix_flops={},
        matrix_library={},
        vector_flops={name: _vector(timer, dtype) for name, dtype in VECTOR_DTYPES.items()},
        launch_seconds=_launches(timer),
        parts={},
    )


def _levels() -> tuple[Level, ...]:
    """Beyond the launches' own caches: L1 and shared memory keep nothing from one launch to the next."""
    size = torch.cuda.get_device_properties(0).L2_cache_size
    return Level(name="L2", capacity=size), Level(name="DRAM")


def _streams(timer: CudaTimer) -> dict[str, Points]:
    """Bandwidth by working set; a GPU's stores fetch nothing, so there is one kind of triad."""
    free, _ = torch.cuda.mem_get_info()
    largest = min(LARGEST, free // 5)
    a, b, c = (torch.zeros(largest // 4, device=DEVICE) for _ in range(3))
    found: dict[str, Points] = {"copy": [], "read": [], "triad": []}
    for size in [size for size in sizes(SMALLEST, largest) if size <= largest]:
        to, one, other = (array[: size // 4] for array in (a, b, c))
        found["copy"].append((2 * size, 2 * size / _best(timer, functools.partial(to.copy_, one))))
        found["read"].append((size, size / _best(timer, one.sum)))
        grid = (triton.cdiv(size // 4, TRIAD_BLOCK),)
        triad = functools.partial(_triad[grid], to, one, other, 3.0, size // 4, TRIAD_BLOCK)
        found["triad"].append((3 * size, 3 * size / _best(timer, triad)))
    return found


def _best(timer: CudaTimer, call: Callable[[], object], calls: int = CALLS, *, record: bool = True) -> float:
    """Fewest seconds of one call; `record`: what is shorter than its launch is recorded as a graph."""
    timer.settle(call, 0.01)
    one = timer.batch(call, 1)
    if one > LONG_CALL:
        return min(one, timer.batch(call, 1))
    if record and one < SHORT_CALL:
        with contextlib.suppress(CannotRecord):
            call = timer.recorded(call)
            calls = max(calls, call.calls)
    return min(timer.batch(call, calls) / calls for _ in range(SAMPLES))


def _matrix_peaks(timer: CudaTimer, dtypes: Sequence[str]) -> dict[str, float]:
    """Of torch's product, by dtype; with float32 `tf32`: the same tensors, their products may be rounded."""
    with _float32_products("highest"):
        found = {name: _matrix(timer, MATRIX_DTYPES[name]) for name in dtypes if name in MATRIX_DTYPES}
    if "float32" in dtypes:
        with _float32_products("high"):
            found["tf32"] = _matrix(timer, torch.float32)
    integers = _integers(timer) if "int8" in dtypes else None
    return found if integers is None else found | {"int8": integers}


@contextlib.contextmanager
def _float32_products(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _matrix(timer: CudaTimer, dtype: torch.dtype) -> float:
    a, b = (torch.randn(MATRIX_SIZE, MATRIX_SIZE, device=DEVICE).to(dtype) for _ in range(2))
    c = torch.empty_like(a)
    return 2.0 * MATRIX_SIZE**3 / _best(timer, lambda: torch.matmul(a, b, out=c))


def _integers(timer: CudaTimer) -> float | None:
    """int8 with sums in int32, where torch has it for this device."""
    function = getattr(torch, "_int_mm", None)
    if function is None:
        return None
    a = torch.randint(-8, 8, (MATRIX_SIZE, MATRIX_SIZE), device=DEVICE, dtype=torch.int8)
    b = a.t().contiguous().t()  # the layout that the library's kernels take
    try:
        return 2.0 * MATRIX_SIZE**3 / _best(timer, lambda: function(a, b))
    except (RuntimeError, NotImplementedError):
        return None


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _triad(to, one, other, factor, n, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0913, PLR0917
    """a[i] = b[i] + s * c[i]."""
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = at < n
    value = tl.load(one + at, mask=inside) + factor * tl.load(other + at, mask=inside)
    tl.store(to + at, value, mask=inside)


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _multiply_add(out, steps, accumulators: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Chains of fused multiply-adds in the type of `out`; the result is stored so that nothing can be left
    out."""
    lanes = tl.arange(0, block)
    rows = tl.arange(0, accumulators)
    value = (rows[:, None] + lanes[None, :]).to(out.dtype.element_ty)
    for _ in range(steps):
        value = value * 0.5 + 1.0
    tl.store(out + tl.program_id(0) * block + lanes, tl.sum(value, axis=0))


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _nothing(out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """An empty kernel."""


def _vector(timer: CudaTimer, dtype: torch.dtype) -> float:
    blocks = torch.cuda.get_device_properties(0).multi_processor_count * BLOCKS_PER_MULTIPROCESSOR
    out = torch.empty(blocks * BLOCK, device=DEVICE, dtype=dtype)
    seconds = _best(timer, lambda: _multiply_add[(blocks,)](out, STEPS, ACCUMULATORS, BLOCK))
    return 2.0 * blocks * BLOCK * ACCUMULATORS * STEPS / seconds


def _launches(timer: CudaTimer) -> dict[str, float]:
    """Seconds of an empty kernel: back to back in a stream, as a node of a graph, waited for each time."""
    out = torch.empty(1, device=DEVICE)
    launch = functools.partial(_nothing[(1,)], out)
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            launch()
    return {
        "stream": _best(timer, launch, LAUNCHES, record=False),
        "graph": _best(timer, graph.replay, record=False) / LAUNCHES,
        "synchronised": min(_waited(launch) for _ in range(LAUNCHES)),
    }


def _waited(launch: Callable[[], object]) -> float:
    start = time.perf_counter()
    launch()
    torch.cuda.synchronize()
    return time.perf_counter() - start
