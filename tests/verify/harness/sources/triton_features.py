"""One kernel for each thing that candidates do with Triton; `forward` picks one by name."""

import importlib.util
import os
import subprocess

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as libdevice_of_cuda
from triton.language.extra.cuda import num_threads
from triton.tools.tensor_descriptor import TensorDescriptor

SCALE = tl.constexpr(0.5)
_found = importlib.util.find_spec("triton.language.extra.libdevice")
copied = importlib.util.module_from_spec(_found)  # as packages do that look for functions by name
_found.loader.exec_module(copied)
DEVICE = triton.runtime.driver.active.get_active_torch_device()


def rows(kernel, x, out=None, **constants):
    """Launch on rows: pointers, the row's length, a block."""
    out = torch.empty_like(x) if out is None else out
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), **constants)
    return out


@triton.jit
def _load(x, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    return tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)


@triton.jit
def _store(out, value, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * n + columns, value, mask=columns < n)


@triton.jit
def _exponential(x, out, n, BLOCK: tl.constexpr):
    _store(out, tl.math.exp(_load(x, n, BLOCK)) * SCALE, n, BLOCK)


@triton.jit
def _library(x, out, n, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    value = libdevice.tanh(value) + libdevice_of_cuda.erf(value) + copied.rsqrt(value * value + 1.0)
    _store(out, value, n, BLOCK)


@triton.jit
def _special(x, out, n, BLOCK: tl.constexpr):
    _store(out, libdevice.cyl_bessel_i0(_load(x, n, BLOCK)), n, BLOCK)


@triton.jit
def _library_bits(x, out, n, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    integer = libdevice.float2int_rz(value * 1000.0)
    bits = libdevice.popc(integer) + libdevice.clz(integer) + libdevice.ffs(integer)
    _store(out, bits + libdevice.int_as_float(libdevice.float_as_int(value)), n, BLOCK)


@triton.jit
def _cumulative(x, out, n, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    _store(out, tl.cumsum(_load(x, n, BLOCK), 0, reverse=REVERSE), n, BLOCK)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _scanned(x, out, n, BLOCK: tl.constexpr):
    _store(out, tl.associative_scan(_load(x, n, BLOCK), 0, _larger), n, BLOCK)


@triton.jit
def _sorted(x, out, n, BLOCK: tl.constexpr):
    _store(out, tl.sort(_load(x, n, BLOCK)), n, BLOCK)


@triton.jit
def _flipped(x, out, n, BLOCK: tl.constexpr):
    _store(out, tl.flip(_load(x, n, BLOCK), 0), n, BLOCK)


@triton.jit
def _counts(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    value = tl.load(x + columns, mask=columns < n, other=0)
    tl.store(out + tl.arange(0, BINS), tl.histogram(value, BINS))


@triton.jit
def _largest(x, out, n, BLOCK: tl.constexpr):
    value, index = tl.max(_load(x, n, BLOCK), axis=0, return_indices=True)
    tl.store(out + tl.program_id(0), value + index.to(tl.float32))


@triton.jit
def _atomic(x, out, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.atomic_add(out + columns, _load(x, n, BLOCK), mask=columns < n)


@triton.jit
def _product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    left = tl.make_block_ptr(a, (M, K), (K, 1), (tl.program_id(0) * BLOCK, 0), (BLOCK, BLOCK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (N, 1), (0, tl.program_id(1) * BLOCK), (BLOCK, BLOCK), (1, 0))
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in tl.range(0, K, BLOCK, num_stages=2):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(right, boundary_check=(0, 1), padding_option="zero")
        total += tl.dot(x, y, input_precision="tf32x3")
        left, right = tl.advance(left, (0, BLOCK)), tl.advance(right, (BLOCK, 0))
    place = tl.make_block_ptr(
        c, (M, N), (N, 1), (tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK), (BLOCK, BLOCK), (1, 0)
    )
    tl.store(place, total.to(c.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def _described(source, target, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) * 2.0)


@triton.jit
def _made_descriptor(x, out, M, N: tl.constexpr, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, N])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, N])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 0]) * 2.0)


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block in (32, 64) for warps in (2, 4)],
    key=["n"], reset_to_zero=["out"], restore_value=["x"],
)  # fmt: skip
@triton.jit
def _tuned(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + at % 8, tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (32, 64)], key=["n"])
@triton.jit
def _counted(out, n, BLOCK: tl.constexpr):
    tl.store(out, tl.load(out) + 1.0)
    tl.store(out + 1, BLOCK)


@triton.heuristics({"BLOCK": lambda arguments: triton.next_power_of_2(arguments["n"])})
@triton.jit
def _guessed(x, out, n, BLOCK: tl.constexpr):
    _store(out, _load(x, n, BLOCK) + 1.0, n, BLOCK)


@triton.jit
def _scaled(x, out, n, factor, flag, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    if flag:
        value = value * factor.to(tl.float32)
    while factor > 100.0:
        factor -= 1.0
    _store(out, value, n, BLOCK)


@triton.jit
def _random(out, seed, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.rand(seed, at), mask=at < n)


@triton.jit
def _grouped(x, out, n, BLOCK: tl.constexpr):
    value = tl.reshape(_load(x, n, BLOCK), (BLOCK // 2, 2))
    first, second = tl.split(value)
    joined = tl.join(second, first)
    _store(out, tl.reshape(tl.where(joined > 0, joined, tl.abs(joined)), (BLOCK,)), n, BLOCK)


@triton.jit
def _half(x, out, n, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    _store(out, (value.to(tl.float32) * 1.5).to(out.dtype.element_ty), n, BLOCK)


@triton.jit
def _batched(a, b, c, N: tl.constexpr):
    batch, row, column = tl.arange(0, 2), tl.arange(0, N), tl.arange(0, N)
    at = batch[:, None, None] * N * N + row[None, :, None] * N + column[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), allow_tf32=False))


@triton.jit
def _assembly(x, out, n, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    value = tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=r,r", [value], tl.float32, True, 1)
    _store(out, value, n, BLOCK)


@triton.jit
def _no_such_function(x, out, n, BLOCK: tl.constexpr):
    _store(out, tl.no_such_function(_load(x, n, BLOCK)), n, BLOCK)


@triton.jit
def _on_vendor(x, out, n, BLOCK: tl.constexpr):
    _store(out, _load(x, n, BLOCK) * num_threads(), n, BLOCK)


@triton.jit
def _no_pointer(x, out, n, BLOCK: tl.constexpr):
    tl.store(out, tl.load(0))


@triton.jit
def _mismatched(x, out, n, BLOCK: tl.constexpr):
    _store(out, _load(x, n, BLOCK) + tl.arange(0, 2 * BLOCK), n, BLOCK)


@triton.jit
def _assumed(x, out, n, BLOCK: tl.constexpr):
    tl.assume(n < 0)
    _store(out, _load(x, n, BLOCK), n, BLOCK)


def descriptors(x):
    """Descriptors that the host makes."""
    out = torch.empty_like(x)
    shape = [16, x.shape[1]]
    source, target = TensorDescriptor.from_tensor(x, shape), TensorDescriptor.from_tensor(out, shape)
    _described[(triton.cdiv(x.shape[0], 16),)](source, target, BLOCK=16)
    return out


def warmed(x):
    """Asks a warm-up for registers, as a persistent kernel does, and launches what it returned."""
    properties = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    kernel = _exponential.warmup(x, out, x.shape[1], BLOCK=block, grid=(1,))
    kernel._init_handles()
    programs = properties["multiprocessor_count"] * max(1, properties["max_num_regs"] // kernel.n_regs)
    assert programs > 0
    assert kernel.metadata.shared >= 0
    kernel[(x.shape[0], 1, 1)](x, out, x.shape[1])
    return out


def product(a, b, dtype=None):
    """A grid from a function."""
    m, k, n = *a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=dtype or a.dtype)
    _product[lambda meta: (triton.cdiv(meta["M"], meta["BLOCK"]), triton.cdiv(n, meta["BLOCK"]))](
        a, b, c, M=m, N=n, K=k, BLOCK=16, num_warps=4, num_stages=3
    )
    return c


def batched(a, b):
    """Three-dimensional products."""
    c = torch.empty_like(a)
    _batched[1,](a, b, c, N=a.shape[-1])
    return c


def scaled(x):
    """Plain numbers as arguments."""
    out = torch.empty_like(x)
    _scaled[[x.shape[0]]](x, out, x.shape[1], 2.5, True, BLOCK=64, num_warps=2)
    return out


def tuned(x):
    """Autotuned, adds to memory."""
    out = torch.zeros(8, device="cuda")
    _tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


def counted(x):
    """How often an autotuned kernel ran, and in which configuration."""
    out = torch.zeros(2)
    _counted[(1,)](out, x.numel())
    return out


def guessed(x):
    """Heuristics."""
    out = torch.empty_like(x)
    _guessed[(x.shape[0],)](x, out, x.shape[1])
    return out


def largest(x):
    """Maximum and its index."""
    return rows(_largest, x, torch.empty(x.shape[0], device=x.device))


def atomic(x):
    """Sum over rows."""
    return rows(_atomic, x, torch.zeros(x.shape[1], device=x.device))


def histogram(x):
    """Counts of integers."""
    out = torch.empty(8, dtype=torch.int32, device=x.device)
    _counts[(1,)](x, out, x.numel(), BLOCK=triton.next_power_of_2(x.numel()), BINS=8)
    return out


def random(x):
    """Random numbers in range."""
    out = torch.empty(x.shape[1], device=x.device)
    _random[(1,)](out, 7, x.shape[1], BLOCK=64)
    return out


def made_descriptor(x):
    """Descriptors that the kernel makes."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    out = torch.empty_like(x)
    _made_descriptor[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], N=x.shape[1], BLOCK=16)
    return out


@triton.jit
def _either(a, b):
    return a or b


@triton.jit
def _last_maximum(a, at_a, b, at_b):
    first = a > b
    return tl.where(first, a, b), tl.where(first, at_a, at_b)


@triton.jit
def _folded(x, out, n, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    some = tl.reduce(value > 1, 0, _either)
    maximum, at = tl.associative_scan((value, tl.arange(0, BLOCK)), 0, _last_maximum)
    _store(out, maximum + at + tl.broadcast_to(some, (BLOCK,)).to(tl.float32), n, BLOCK)


@triton.jit
def _constants(x, out, n, BLOCK: tl.constexpr):
    value = _load(x, n, BLOCK)
    ones = tl.full([BLOCK], -1, tl.uint32)
    half = tl.full([BLOCK], 1.5, tl.bfloat16)
    below = libdevice.float2int_rd(value)
    every = (~(ones - ones) == 4294967295).to(tl.float32) * (~(ones == 0)).to(tl.float32)
    _store(out, below + half.to(tl.float32) + (ones == 4294967295).to(tl.float32) + every, n, BLOCK)


@triton.jit
def _rounded(x, out, n, BLOCK: tl.constexpr):
    _store(out, _load(x, n, BLOCK) * 100, n, BLOCK)


def eight_bits(x):
    """Stored as float8, what is too large as the largest number."""
    return rows(_rounded, x, torch.empty_like(x, dtype=torch.float8_e4m3fn)).float()


def looked_at(x):
    """Through a wrapper that looks at its kernel and launches what a launch returned."""
    assert isinstance(_exponential, triton.JITFunction)
    assert [each.name for each in _exponential.params if each.is_constexpr] == ["BLOCK"]
    assert "tl.math.exp" in _exponential.src
    assert len(_exponential.cache_key) == 64
    out, grid, block = torch.empty_like(x), (x.shape[0],), triton.next_power_of_2(x.shape[1])
    compiled = _exponential.run(x, out, x.shape[1], block, grid=grid, warmup=False)
    out.zero_()
    compiled[grid](x, out, x.shape[1])
    return out


def wrapped(x):
    """Through an operator that has a kernel for CUDA only, launched for torch.compile to see."""
    return torch.ops.kernelmill_test.exponential(x)


library = torch.library.Library("kernelmill_test", "DEF")
library.define("exponential(Tensor x) -> Tensor")


@torch.library.impl(library, "exponential", "CUDA")
def _exponential_on_device(x):
    out = torch.empty_like(x)
    kernel = torch.library.wrap_triton(_exponential)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def replaced(x):
    """PyTorch's operator, for which this library has a kernel."""
    own = torch.library.Library("aten", "IMPL")
    own.impl("sigmoid", _exponential_on_device, "CUDA")
    result = torch.sigmoid(x)
    own._destroy()
    return result


def found_device(x):
    """A library asks a command for the vendor, and the environment whether it is interpreted."""
    assert "GPU 0" in subprocess.run(["nvidia-smi"], check=True, capture_output=True, text=True).stdout
    assert int(triton.testing.nvsmi(["clocks.max.sm"])[0]) > 0
    assert torch.accelerator.current_accelerator().type == "cuda"
    with torch.get_device_module().device(0):
        pass
    assert torch._C._cuda_getCurrentRawStream(0) == 0
    assert "TRITON_INTERPRET" not in os.environ
    return torch.compile(lambda value: rows(_exponential, value))(x)


FEATURES = {
    "folded": lambda x: rows(_folded, x), "constants": lambda x: rows(_constants, x),
    "eight_bits": eight_bits, "looked_at": looked_at, "wrapped": wrapped, "replaced": replaced,
    "found_device": found_device,
    "exponential": lambda x: rows(_exponential, x),
    "library": lambda x: rows(_library, x),
    "special": lambda x: rows(_special, x),
    "library_bits": lambda x: rows(_library_bits, x),
    "cumulative": lambda x: rows(_cumulative, x, REVERSE=False),
    "reverse": lambda x: rows(_cumulative, x, REVERSE=True),
    "scanned": lambda x: rows(_scanned, x),
    "sorted": lambda x: rows(_sorted, x),
    "flipped": lambda x: rows(_flipped, x),
    "grouped": lambda x: rows(_grouped, x),
    "half": lambda x: rows(_half, x),
    "assembly": lambda x: rows(_assembly, x),
    "on_vendor": lambda x: rows(_on_vendor, x),
    "no_pointer": lambda x: rows(_no_pointer, x),
    "mismatched": lambda x: rows(_mismatched, x),
    "assumed": lambda x: rows(_assumed, x),
    "no_such_function": lambda x: rows(_no_such_function, x),
    "largest": largest, "atomic": atomic, "histogram": histogram, "random": random, "tuned": tuned,
    "guessed": guessed, "scaled": scaled, "warmed": warmed, "descriptors": descriptors,
    "made_descriptor": made_descriptor, "product": product, "batched": batched,
    "counted": counted,
}  # fmt: skip


class ModelNew(torch.nn.Module):
    """Calls one of them."""

    def forward(self, name, *tensors):
        """By name."""
        return FEATURES[name](*tensors)
