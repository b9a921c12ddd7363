"""The patched interpreter: bfloat16 and NaN as on hardware, and one mode per process."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from pipeline.backends.triton.execution_mode import interpreting
from pipeline.backends.triton.interpretation.interpreter import narrow, widen
from tests.backends.triton.triton_jobs import ROOT

ARITHMETIC = """
import torch
import triton
import triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()
mend()  # a second call changes nothing


@triton.jit
def kernel(x, y, out, larger, product, N: tl.constexpr):
    at = tl.arange(0, N)
    square = at[:, None] * N + at[None, :]
    a = tl.load(x + square)
    b = tl.load(y + square)
    tl.store(out + square, a * b + a - b)
    tl.store(larger + square, tl.where(a > b, a, tl.maximum(a, b)))
    tl.store(product + square, tl.dot(a, b))


torch.manual_seed(0)
x, y = torch.randn(2, 16, 16).to(torch.bfloat16)
out, larger, product = torch.empty_like(x), torch.empty_like(x), torch.empty(16, 16)
kernel[(1,)](x, y, out, larger, product, N=16)
assert torch.equal(out, x * y + x - y), (out, x * y + x - y)
assert torch.equal(larger, torch.maximum(x, y))
torch.testing.assert_close(product, x.float() @ y.float())


@triton.jit
def bounded(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(out + at, tl.maximum(a, 1.0))
    tl.store(out + N + at, tl.minimum(a, 1.0))
    tl.store(out + 2 * N + at, tl.clamp(a, 0.0, 1.0))
    tl.store(out + 3 * N + at, tl.maximum(a, 1.0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 4 * N + at, tl.clamp(a, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL))


nan = float("nan")  # a GPU drops it, unless it is asked not to
for dtype in (torch.float32, torch.bfloat16):
    found = torch.empty(10, dtype=dtype)
    bounded[(1,)](torch.tensor([nan, 2.0], dtype=dtype), found, N=2)
    for at, value in zip((0, 1, 6, 7, 4, 5, 8), (1.0, 2.0, nan, 2.0, 0.0, 1.0, nan), strict=True):
        torch.testing.assert_close(found[at].float().item(), value, equal_nan=True)
    assert (found[2], found[3]) == (1.0, 1.0)
"""


FOREIGN = """
import torch
import triton
import triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()
from triton.language.extra import libdevice


@triton.jit
def kernel(x, half, out, sums, shift, N: tl.constexpr):
    at = tl.arange(0, N)
    values = tl.load(x + at)
    tl.store(out + at, libdevice.tanh(values) + libdevice.rsqrt(values) * shift.to(tl.float32))
    tl.store(out + N + at, libdevice.tanh(tl.load(half + at)))
    tl.store(sums, tl.sum(tl.load(half + at), axis=0))
    tl.store(sums + 1, tl.sum(tl.load(x + at) * shift, axis=0))


@triton.jit
def counted(half, into, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_add(into + at % 4, tl.load(half + at), mask=at < N - 4)
    tl.atomic_add(into + 4, 0.5)


torch.manual_seed(0)
x = torch.rand(64) + 0.5
half = x.to(torch.bfloat16)
out, sums = torch.empty(128), torch.empty(2)
kernel[(1,)](x, half, out, sums, 0.1, N=64)
torch.testing.assert_close(out[:64], x.tanh() + x.rsqrt() * 0.1)
assert torch.equal(out[64:], half.float().tanh().to(torch.bfloat16).float())
tree = half
while len(tree) > 1:
    tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
into = torch.zeros(5, dtype=torch.bfloat16)
counted[(3,)](half, into, N=64)
one_by_one = torch.zeros(4, dtype=torch.bfloat16)
for part in half[:60].reshape(-1, 4).repeat(3, 1):
    one_by_one += part
assert torch.equal(into[:4], one_by_one) and into[4] == 1.5, (into, one_by_one)
assert sums[0] == tree.float().item() != half.float().sum().item(), (sums, tree)
torch.testing.assert_close(sums[1], (x * torch.tensor(0.1)).sum())
"""

LANGUAGE = """
import inspect
import torch
import triton
import triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()
before = {module: dict(inspect.getmembers(module)) for module in (tl, tl.tensor)}


@triton.jit
def half(values):
    return tl.sum(values, 0) / 2


@triton.jit
def kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + tl.program_id(0), half(tl.load(x + at)) + half(tl.load(x + at)))


@triton.jit
def fails(x):
    half(tl.load(x + tl.arange(0, 3)))


x, out = torch.arange(4.0), torch.empty(2)
for _ in range(2):
    kernel[(2,)](x, out, N=4)
    assert out.tolist() == [6, 6]
    try:
        fails[(1,)](x)
    except Exception:
        pass
for module, members in before.items():
    for name in ("load", "sum", "arange", "__add__"):
        assert getattr(module, name, None) is members.get(name), (module, name)
"""

REDUCTIONS = """
import time
import torch
import triton
import triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()


@triton.jit
def larger(a, b):
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def scalar(a, b):
    if a > b or a != a:
        return a
    return b


@triton.jit
def first(a, b):
    return a + 0 * b


@triton.jit
def merge(mean, squares, weight, mean_2, squares_2, weight_2):
    delta, both = mean_2 - mean, weight + weight_2
    share = weight_2 / both
    return mean + delta * share, squares + squares_2 + delta * delta * weight * share, both


@triton.jit
def kernel(x, half, out, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    values = tl.load(x + row[:, None] * COLS + col[None, :])
    tl.store(out + row, tl.reduce(values, 1, larger))
    tl.store(out + ROWS + row[:, None], tl.reduce(values, 1, larger, keep_dims=True))
    tl.store(out + 2 * ROWS + row, tl.reduce(values, 1, scalar))
    tl.store(out + 3 * ROWS + row, tl.reduce(values, 1, first))
    mean, squares, weight = tl.reduce((values, values * 0, values * 0 + 1), 1, merge)
    tl.store(out + 4 * ROWS + row, mean)
    tl.store(out + 5 * ROWS + row, squares / weight)
    narrow = tl.load(half + row[:, None] * COLS + col[None, :])
    tl.store(out + 6 * ROWS + row, tl.reduce(narrow, 1, larger))
    tl.store(out + 7 * ROWS, tl.reduce(values, None, larger))
    tl.store(out + 7 * ROWS + 1 + col, tl.reduce(values, 0, larger))


@triton.jit
def long(x, out, COLS: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, COLS)), 0, larger))


torch.manual_seed(0)
x = torch.randn(4, 16)
x[1, 5] = float("nan")
half = torch.randn(4, 16).to(torch.bfloat16)
out = torch.empty(7 * 4 + 1 + 16)
kernel[(1,)](x, half, out, ROWS=4, COLS=16)
found = out[:28].reshape(7, 4)
for number in range(3):
    assert torch.equal(found[number].nan_to_num(9.0), x.amax(1).nan_to_num(9.0)), (number, found)
assert torch.equal(found[3].nan_to_num(9.0)[[0, 2, 3]], x[[0, 2, 3], 0]), found
torch.testing.assert_close(found[4], x.mean(1), equal_nan=True)
torch.testing.assert_close(found[5], x.var(1, correction=0), equal_nan=True)
assert torch.equal(found[6], half.float().amax(1))
assert out[28].isnan()
assert torch.equal(out[29:].nan_to_num(9.0), x.amax(0).nan_to_num(9.0))

many = torch.randn(1 << 17)
started = time.process_time()
long[(1,)](many, out, COLS=1 << 17)
assert out[0] == many.max()
assert time.process_time() - started < 10, "one element after the other: half a minute"
"""


def bits(values):
    """bfloat16 bits of a tensor."""
    return values.view(torch.int16).numpy().view(np.uint16)


def test_rounding_is_to_nearest_even():
    """As PyTorch rounds, ties, subnormals, overflow, infinity and NaN included."""
    special = [0.0, -0.0, 1.00390625, 1.01171875, 3.4e38, -3.4e38, 1e-40, float("inf"), float("-inf")]
    values = torch.cat(
        [torch.tensor(special), torch.randn(10_000) * 10.0 ** torch.randint(-38, 38, (10_000,))]
    )
    assert np.array_equal(narrow(values.numpy()), bits(values.to(torch.bfloat16)))
    assert np.isnan(widen(narrow(np.array([np.nan], np.float32)))).all()


def test_widening_is_exact():
    """Every bfloat16 that is a number comes back unchanged."""
    every = np.arange(2**16, dtype=np.uint16)
    numbers = every[~np.isnan(widen(every))]
    assert np.array_equal(narrow(widen(numbers)), numbers)
    assert np.array_equal(widen(bits(torch.tensor([1.5, -2.0]).to(torch.bfloat16))), [1.5, -2.0])


def test_arithmetic_and_products(tmp_path):
    """Third-party kernels compute in bfloat16 without casts: sums, comparisons, tl.dot."""
    script = tmp_path / "arithmetic.py"
    script.write_text(textwrap.dedent(ARITHMETIC))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_language_is_whole_after_a_launch(tmp_path):
    """Device functions find it replaced once a launch; afterwards it is what it was, also after an error."""
    script = tmp_path / "language.py"
    script.write_text(LANGUAGE)
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_foreign_host_code(tmp_path):
    """Scalars with methods, functions of the device library, sums of bfloat16 that round at every level."""
    script = tmp_path / "arithmetic.py"
    script.write_text(textwrap.dedent(FOREIGN))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_reductions_by_functions_of_the_kernel(tmp_path):
    """Whole rows at once, in their order; what looks at a value still gets one; NaN, bfloat16."""
    script = tmp_path / "reductions.py"
    script.write_text(textwrap.dedent(REDUCTIONS))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_mode_cannot_change(monkeypatch):
    """A process that imported Triton to compile says so when it is asked to interpret."""
    assert not interpreting()
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(
        RuntimeError, match="imported to compile, but TRITON_INTERPRET now asks it to interpret"
    ):
        interpreting()


def test_preload_keeps_the_mode():
    """Verify preloads under TRITON_INTERPRET, compile without it; other settings of the shell are dropped."""
    code = (
        "import os, pipeline.backends.triton.compiler_warm_up\n"
        "from pipeline.backends.triton.execution_mode import interpreting\n"
        "import triton.backends.nvidia.compiler as compiler\n"
        "print(interpreting(), compiler.CUDAOptions.ptx_options, os.environ['PTXAS_OPTIONS'])\n"
    )
    for mode, expected in (("1", "True"), ("0", "False")):
        environment = os.environ | {"TRITON_INTERPRET": mode, "PTXAS_OPTIONS": "-O0"}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        assert run.stdout.split() == [expected, "None", "-O0"]
