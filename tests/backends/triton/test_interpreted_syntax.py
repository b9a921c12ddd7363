"""Operators that Python and the compiler read differently mean in the interpreter what they mean compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.triton.triton_jobs import ROOT

KERNEL = """
import torch, triton
import triton.language as tl
from pipeline.backends.triton.interpretation.interpreter import mend

mend()
read, at_least, unrolled = tl.load, tl.maximum, tl.static_range


@triton.jit
def inside(a, b):
    return a and not b


@triton.jit
def kernel(x, y, n, B: tl.constexpr, TYPE: tl.constexpr, FLAG: tl.constexpr):
    tl.static_assert(B % 2 == 0, "B is odd")
    at = tl.arange(0, B)
    values = at_least(read(x + at, mask=(at < n) and (at >= 0), other=0.0), -9.0)
    if FLAG and B > 4:
        values = tl.where((at > 2) or (values > 1), values, 0.0)
    total = tl.zeros([B], tl.float32)
    for i in range(0, 4):
        total += (i * 2).to(tl.float32) + i.to(tl.int64)
    for i in unrolled(3):
        total += i
    total += tl.where(inside(at < n, at > 3), 0, 1)
    tl.store(y + at, (values + total).to(TYPE.value), mask=at < n)


x = torch.arange(8.0) - 3
at = torch.arange(8)
y = torch.empty(8)
kernel[(1,)](x, y, 8, B=8, TYPE=tl.float32, FLAG=True)
expected = torch.where((at > 2) | (x > 1), x, 0.0) + 12 + 6 + 3 + torch.where(at <= 3, 0, 1)
assert torch.equal(y, expected), (y, expected)
assert read is tl.load, "names are the language's again"
try:
    kernel[(1,)](x, y, 7, B=7, TYPE=tl.float32, FLAG=True)
except triton.compiler.errors.CompileTimeAssertionFailure as error:
    assert "B is odd" in str(error)
else:
    raise AssertionError("the assertion passed")
"""


@pytest.mark.slow
def test_as_the_compiler_has_it(tmp_path: Path) -> None:
    """Operators between blocks, variables of loops, constants, static assertions."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(path)], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
