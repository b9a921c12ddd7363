"""`tl.dot_scaled` in the interpreter, for all formats, compared with float64."""

import subprocess
import sys

import pytest

from tests.paths import ROOT

PROGRAM = """
import itertools
import torch, triton, triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()
GLOBAL = tl.constexpr("e5m2")


@triton.jit
def product(a, b, sa, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, RA: tl.constexpr,
            CA: tl.constexpr, RB: tl.constexpr, CB: tl.constexpr, FA: tl.constexpr, FB: tl.constexpr,
            WA: tl.constexpr, WB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr, ADD: tl.constexpr):
    m, n, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    left = tl.load(a + tl.arange(0, RA)[:, None] * CA + tl.arange(0, CA)[None, :])
    right = tl.load(b + tl.arange(0, RB)[:, None] * CB + tl.arange(0, CB)[None, :])
    left_scale, right_scale = None, None
    if WA:
        left_scale = tl.load(sa + m[:, None] * (K // 32) + g[None, :])
    if WB:
        right_scale = tl.load(sb + n[:, None] * (K // 32) + g[None, :])
    at = c + m[:, None] * N + n[None, :]
    if ADD:
        sums = tl.load(at)
        sums = tl.dot_scaled(left, left_scale, FA, right, right_scale, FB, sums, lhs_k_pack=PA, rhs_k_pack=PB)
    else:
        sums = tl.dot_scaled(left, left_scale, FA, right, right_scale, FB, lhs_k_pack=PA, rhs_k_pack=PB)
    tl.store(at, sums)


@triton.jit
def literal(a, b, scale, c, FAST: tl.constexpr):
    m, k = tl.arange(0, 16), tl.arange(0, 64)
    left = tl.load(a + m[:, None] * 64 + k[None, :])
    right = tl.load(b + k[:, None] * 16 + m[None, :])
    scales = tl.load(scale + m[:, None] * 2 + tl.arange(0, 2)[None, :])
    sums = tl.dot_scaled(left, scales, GLOBAL, right, None, "bf16", fast_math=FAST)
    tl.store(c + m[:, None] * 16 + m[None, :], sums)


TYPES = {
    "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16, "fp16": torch.float16
}
SIZES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
M, N, K = 16, 32, 128


def operand(name, shape, along):
    '''What the kernel is given, packed along a dimension, and its values.'''
    if name != "e2m1":
        made = torch.randn(shape).to(TYPES[name])
        return made, made.double()
    codes = torch.randint(16, shape, dtype=torch.uint8)
    values = SIZES[(codes & 7).long()] * (1 - 2 * (codes >> 3).double())
    pairs = codes.transpose(along, 1)
    pairs = pairs[:, ::2] | pairs[:, 1::2] << 4
    return pairs.transpose(along, 1).contiguous(), values


torch.manual_seed(0)
cases = [(*names, True, True, True, True, add) for names in itertools.product(["e2m1", *TYPES], repeat=2)
         for add in (False, True)]
cases += [("e2m1", "e4m3", True, True, False, True, True), ("e4m3", "e2m1", True, True, True, False, False),
          ("e2m1", "e2m1", False, True, False, False, True), ("bf16", "e4m3", False, True, True, True, True),
          ("e4m3", "fp16", True, False, True, True, True), ("e5m2", "e4m3", False, False, True, True, False)]
for fa, fb, wa, wb, pa, pb, add in cases:
    left, a = operand(fa, (M, K), 1 if pa else 0)
    right, b = operand(fb, (K, N), 0 if pb else 1)
    sa, sb = torch.randint(123, 132, (M, K // 32), dtype=torch.uint8), torch.randint(
        123, 132, (N, K // 32), dtype=torch.uint8)
    c = torch.randn(M, N)
    wide_a = a * torch.exp2(sa.double() - 127).repeat_interleave(32, 1) if wa else a
    wide_b = b * torch.exp2(sb.double() - 127).repeat_interleave(32, 1).T if wb else b
    expected = wide_a @ wide_b + (c.double() if add else 0)
    bound = wide_a.abs() @ wide_b.abs()
    given = [each.view(torch.uint8) if fb == "e5m2" and each.dtype.itemsize == 1 else each
             for each in (left, right)]
    product[(1,)](*given, sa, sb, c, M, N, K, *left.shape, *right.shape, fa, fb, wa, wb, pa, pb, add)
    error = float(((c - expected).abs() / bound).max())
    assert error < 1e-6, (fa, fb, wa, wb, pa, pb, add, error)

left, right = torch.ones(16, 64).to(torch.float8_e5m2), torch.ones(64, 16, dtype=torch.bfloat16)
scales = torch.full((16, 2), 127, dtype=torch.uint8)
scales[1], scales[2] = 255, 0
for fast in (False, True):
    c = torch.empty(16, 16)
    literal[(1,)](left, right, scales, c, fast)
    assert (c[0] == 64).all() and (c[2] == 64 * 2.0**-127).all(), c
    assert (c[1].isinf() if fast else c[1].isnan()).all(), c
"""


@pytest.mark.slow
def test_formats_scales_and_packing(tmp_path):
    """Every pair of formats, with and without scales and accumulator, packed along either dimension."""
    environment = {"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    program = tmp_path / "products.py"  # the interpreter reads the source
    program.write_text(PROGRAM)
    command = [sys.executable, str(program)]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
