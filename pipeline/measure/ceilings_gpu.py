"""Ceilings of a GPU, through torch and one Triton kernel. Imported only where a GPU measures."""

import functools
from collections.abc import Callable
from pathlib import Path

import torch
import triton
import triton.language as tl

from pipeline.measure.ceilings import DeviceCeilings, envelope, sizes
from pipeline.measure.timer_cuda import CudaTimer

SMALLEST = 1 << 20  # bytes of one array; below it a launch costs more than the work
LARGEST = 2 << 30
SAMPLES = 10
CALLS = 5
MATRIX_SIZE = 8192
ACCUMULATORS = 8
STEPS = 2048
BLOCK = 256
BLOCKS_PER_MULTIPROCESSOR = 32


def measure(folder: Path) -> DeviceCeilings:  # noqa: ARG001
    """Everything; `folder` is not needed here."""
    timer = CudaTimer(flush_cache=False)
    timer.prepare()
    free, _ = torch.cuda.mem_get_info()
    largest = min(LARGEST, free // 4)
    one, other = (torch.zeros(largest // 4, device="cuda") for _ in range(2))
    copy, read = [], []
    for size in [size for size in sizes(SMALLEST, largest) if size <= largest]:
        source, target = one[: size // 4], other[: size // 4]
        copy.append((2 * size, 2 * size / _best(timer, functools.partial(target.copy_, source))))
        read.append((size, size / _best(timer, source.sum)))
    del one, other
    dtypes = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    return DeviceCeilings(
        copy=envelope(copy),
        read=envelope(read),
        matrix_flops={name: _matrix(timer, dtype) for name, dtype in dtypes.items()},
        vector_flops=_vector(timer),
    )


def _best(timer: CudaTimer, call: Callable[[], object]) -> float:
    """Fewest seconds of one call."""
    timer.settle(call, 0.01)
    return min(timer.batch(call, CALLS) / CALLS for _ in range(SAMPLES))


def _matrix(timer: CudaTimer, dtype: torch.dtype) -> float:
    a, b = (torch.randn(MATRIX_SIZE, MATRIX_SIZE, device="cuda").to(dtype) for _ in range(2))
    c = torch.empty_like(a)
    return 2.0 * MATRIX_SIZE**3 / _best(timer, lambda: torch.matmul(a, b, out=c))


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _multiply_add(out, steps, accumulators: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Chains of fused multiply-adds; the result is stored so that nothing can be left out."""
    lanes = tl.arange(0, block)
    rows = tl.arange(0, accumulators)
    value = rows[:, None] + lanes[None, :] * 1.0
    for _ in range(steps):
        value = value * 0.5 + 1.0
    tl.store(out + tl.program_id(0) * block + lanes, tl.sum(value, axis=0))


def _vector(timer: CudaTimer) -> float:
    blocks = torch.cuda.get_device_properties(0).multi_processor_count * BLOCKS_PER_MULTIPROCESSOR
    out = torch.empty(blocks * BLOCK, device="cuda")
    seconds = _best(timer, lambda: _multiply_add[(blocks,)](out, STEPS, ACCUMULATORS, BLOCK))
    return 2.0 * blocks * BLOCK * ACCUMULATORS * STEPS / seconds
