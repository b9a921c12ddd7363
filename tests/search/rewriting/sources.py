"""Sources that rewrites are tried on, and what a rewrite finds in them."""

from pathlib import Path

from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation

MATMUL = Path("kernels/matmul/matmul_triton.py").read_text()

TWO_KERNELS = '''"""Matrix product, and bias with GELU in a second kernel."""

import triton
import triton.language as tl


@triton.jit
def _gelu(x):
    return 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))


@triton.jit
def product(a, b, c, M, N, K, a_stride, b_stride, c_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            BLOCK_K: tl.constexpr):
    tiles = tl.cdiv(N, BLOCK_N)
    m = tl.program_id(0) // tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(0) % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask = (m < M)[:, None] & (k < K)[None, :]
        b_mask = (k < K)[:, None] & (n < N)[None, :]
        a_tile = tl.load(a + m[:, None] * a_stride + k[None, :], mask=a_mask, other=0.0)
        b_tile = tl.load(b + k[:, None] * b_stride + n[None, :], mask=b_mask, other=0.0)
        sums += tl.dot(a_tile, b_tile, input_precision="ieee")
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * c_stride + n[None, :], sums.to(c.dtype.element_ty), mask=inside)


@triton.jit
def bias_gelu(values, bias, result, count, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(values + at, mask=inside).to(tl.float32)
    value = value + tl.load(bias + at % N, mask=inside, other=0.0).to(tl.float32)
    tl.store(result + at, _gelu(value).to(result.dtype.element_ty), mask=inside)


def launch(*, a, b, c, bias=None, epilogue, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages):
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0:
        return
    product[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=num_warps, num_stages=num_stages,
    )
    count = c.numel()
    bias_gelu[(triton.cdiv(count, 1024),)](c, bias, c, count, N, BLOCK=1024)
'''
H200 = {"sm_count": 132}


def found(transformation: Transformation, text: str, **limits: int) -> list[Rewrite]:
    """All that it finds in a text."""
    return list(transformation.find(Source(text=text, limits=limits)))


def function(*lines: str) -> str:
    """C++ lines in a function."""
    inside = "\n".join(f"    {line}" for line in lines)
    head = 'extern "C" int f(float* y, float* z, const float* x, int n, int m)'
    return f"{head} {{\n{inside}\n    return 0;\n}}\n"
