"""Matrix product in Triton, alone or with bias and exact GELU in the epilogue.

One program computes one BLOCK_M x BLOCK_N tile of c, BLOCK_K columns of a at a time.

1. The tile is accumulated in float32 by the matrix units (`tl.dot`); each element of a and b that is loaded
   is used BLOCK_N or BLOCK_M times. Limited at first by the latency of the loads.
2. num_stages > 1: the loads of later steps are in flight while this one multiplies (software pipelining
   through shared memory). Limited by shared memory: each stage holds a tile of a and one of b.
3. GROUP_M > 1: programs walk down GROUP_M rows of tiles before they go to the next column, so those that run
   together share tiles of a and b in L2 (the order of Triton's tutorial 03, and of CUTLASS' threadblock
   swizzle).
4. The epilogue adds the bias and applies GELU while the tile is still in registers: the product itself never
   travels.

float32 is multiplied in full (`ieee`), not as tf32: on NVIDIA that means no tensor cores.
"""

import triton
import triton.language as tl


@triton.jit
def _gelu(x):
    """x (1 + erf(x / sqrt 2)) / 2."""
    return 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))


@triton.jit
def _tile(program, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Row and column of the program's tile, GROUP_M rows of tiles at a time."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = program // (GROUP_M * tiles_n)
    inside = program % (GROUP_M * tiles_n)
    height = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)
    return group * GROUP_M + inside % height, inside // height


@triton.jit
def matmul(
    a, b, bias, c, M, N, K, a_stride, b_stride, c_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr, EPILOGUE: tl.constexpr,
):  # fmt: skip
    """a[M, K], b[K, N], bias[N] -> c[M, N]; EVEN_K: K is a multiple of BLOCK_K and needs no mask."""
    tile_m, tile_n = _tile(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    # 64-bit offsets: rows times stride passes 2**31 elements for matrices that fit today's memories.
    m = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_place = a + m[:, None] * a_stride + k[None, :]
    b_place = b + k.to(tl.int64)[:, None] * b_stride + n[None, :]
    b_step = tl.cast(b_stride, tl.int64) * BLOCK_K
    a_mask = (m < M)[:, None]
    b_mask = (n < N)[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            a_tile = tl.load(a_place, mask=a_mask, other=0.0)
            b_tile = tl.load(b_place, mask=b_mask, other=0.0)
        else:
            a_tile = tl.load(a_place, mask=a_mask & (start + k < K)[None, :], other=0.0)
            b_tile = tl.load(b_place, mask=b_mask & (start + k < K)[:, None], other=0.0)
        sums = tl.dot(a_tile, b_tile, sums, input_precision="ieee")
        a_place += BLOCK_K
        b_place += b_step
    if EPILOGUE == "bias_gelu":
        sums = _gelu(sums + tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :])
    tl.store(c + m[:, None] * c_stride + n[None, :], sums.to(c.dtype.element_ty), mask=a_mask & b_mask)


def launch(*, a, b, c, bias=None, epilogue, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps, num_stages):
    """a[M, K], b[K, N] with any row stride, bias[N] (epilogue bias_gelu) -> c[M, N]."""
    M, K = a.shape
    N = b.shape[1]
    if M == 0 or N == 0:
        return
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul[grid](
        a, b, bias, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M,
        EVEN_K=K % BLOCK_K == 0, EPILOGUE=epilogue, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
