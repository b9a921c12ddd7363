"""Products of float32 in the interpreter: as precise as the kernel asks for, and a remark if that is tf32."""

import subprocess
import sys

import pytest

from tests.paths import ROOT

PROGRAM = """
import torch, triton, triton.language as tl
from pipeline.backends.triton.interpretation import dot_precision
from pipeline.backends.triton.interpretation.interpreter import mend

mend()

@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr, HOW: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + places), tl.load(b_ptr + places)
    if HOW == "default":
        c = tl.dot(a, b)
    elif HOW == "no tf32":
        c = tl.dot(a, b, allow_tf32=False)
    else:
        c = tl.dot(a, b, input_precision=HOW)
    tl.store(c_ptr + places, c)

a, b = torch.randn(2, 32, 32, generator=torch.Generator().manual_seed(1))
a[0, 0], a[1, 1] = float("inf"), float("nan")
exact, size = a.double() @ b.double(), a.abs().double().nan_to_num(0, 0, 0) @ b.abs().double()

def error(how):
    c = torch.empty(32, 32)
    product[(1,)](a, b, c, 32, how)
    assert torch.equal(c.isnan(), exact.isnan()) and torch.equal(c.isinf(), exact.isinf()), how
    finite = exact.isfinite()
    return float(((c - exact)[finite].abs() / size[finite]).max()), len(dot_precision.take_remarks())

for how, least, most, remarks in (
    ("default", 0, 1e-6, 0), ("tf32", 1e-4, 2e-3, 1), ("no tf32", 0, 1e-6, 0), ("ieee", 0, 1e-6, 0),
    ("tf32x3", 0, 2e-6, 0), ("bf16x3", 0, 1e-4, 0), ("bf16x6", 0, 1e-6, 0),
):
    found, noted = error(how)
    assert least <= found <= most and noted == remarks, (how, found, noted)

a = a.nan_to_num(1.0, 1.0).bfloat16().float()  # fits into tf32
b = b.bfloat16().float()
exact, size = a.double() @ b.double(), a.abs().double() @ b.abs().double()
found, noted = error("tf32")
assert found < 1e-6 and noted == 0, (found, noted)
"""


@pytest.mark.slow
def test_precisions(tmp_path):
    """Each `input_precision` and none, special values, operands that lose nothing."""
    environment = {"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    program = tmp_path / "products.py"  # the interpreter reads the source
    program.write_text(PROGRAM)
    command = [sys.executable, str(program)]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


TRANSPOSED = """
import numpy as np
from pipeline.backends.triton.interpretation.dot_precision import multiply

generator = np.random.default_rng(1)
for kind in (np.float16, np.float32):
    a, b = (generator.normal(size=size).astype(kind) for size in ((33, 200), (200, 65)))
    assert np.array_equal(multiply(a, b), multiply(b.T, a.T).T), kind
    rows = [multiply(a[row : row + 1], b) for row in range(len(a))]
    assert np.array_equal(multiply(a, b), np.concatenate(rows)), kind
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert not np.array_equal(multiply(a, b), exact.astype(np.float32)), "sums are rounded on the way"
"""


def test_products_do_not_depend_on_the_layout():
    """Transposed and row by row, the same sums: a backward finds the scores of its forward again."""
    environment = {"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TRANSPOSED]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
