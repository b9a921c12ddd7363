"""Low-rank adapters in a batch, in Triton: y[t] = x[t] down[a] up[a] with a = adapter[t].

Two kernels, as in S-LoRA (Sheng et al. 2023, arXiv:2311.03285): the first multiplies with `down`, the
second with `up`. Each program reads the factors of its token's adapter where they lie. Tokens of a
decoding batch are few and their adapters many, so that bandwidth is the limit, and vectors of sums do what
matrix instructions would. In a mixture (Li et al. 2024, arXiv:2404.15159) a token has several adapters,
whose results the second kernel adds up with their weights.

1. SPLIT: few tokens do not fill a device. Parts of the depth are given to programs of their own; the
   second kernel adds up their sums, in order.
2. num_stages > 1 loads the weights of later steps while this one is multiplied.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def shrink(
    x, down, adapter, hidden, depth, rank, part, x_stride,
    TOP_K: tl.constexpr, RANK: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x[tokens, depth], down -> hidden[tokens * TOP_K, parts, rank]; each program sums `part` rows."""
    use = tl.program_id(0).to(tl.int64)
    token = use // TOP_K
    column, row = tl.arange(0, RANK), tl.arange(0, BLOCK_K)
    weights = down + tl.load(adapter + use) * depth * rank
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, depth)
    sums = tl.zeros([RANK], tl.float32)
    for start in tl.range(first, last, BLOCK_K, num_stages=STAGES):
        k = start + row
        values = tl.load(x + token * x_stride + k, mask=k < last, other=0.0).to(tl.float32)
        inside = (k < last)[:, None] & (column < rank)[None, :]
        tile = tl.load(weights + k[:, None].to(tl.int64) * rank + column[None, :], mask=inside, other=0.0)
        sums += tl.sum(values[:, None] * tile.to(tl.float32), axis=0)
    place = hidden + (use * tl.num_programs(1) + tl.program_id(1)) * rank
    tl.store(place + column, sums, mask=column < rank)


@triton.jit
def expand(
    hidden, up, adapter, gate, y, rank, cols,
    TOP_K: tl.constexpr, PARTS: tl.constexpr, RANK: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """hidden[tokens * TOP_K, PARTS, rank], up, gate[tokens, TOP_K] or None for 1 -> y[tokens, cols]."""
    token = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, RANK)
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (row < rank)[:, None] & (col < cols)[None, :]
    sums = tl.zeros([BLOCK_N], tl.float32)
    for each in range(TOP_K):
        use = token * TOP_K + each
        values = tl.zeros([RANK], tl.float32)
        for part in range(PARTS):
            values += tl.load(hidden + (use * PARTS + part) * rank + row, mask=row < rank, other=0.0)
        weights = up + tl.load(adapter + use) * rank * cols
        tile = tl.load(weights + row[:, None].to(tl.int64) * cols + col[None, :], mask=inside, other=0.0)
        found = tl.sum(values[:, None] * tile.to(tl.float32), axis=0)
        sums += found * tl.load(gate + use).to(tl.float32) if gate is not None else found
    tl.store(y + token * cols + col, sums.to(y.dtype.element_ty), mask=col < cols)


def launch(*, x, down, up, adapter, y, **tunables):
    """x[tokens, depth] with any row stride, down, up, adapter as in the reference -> y[tokens, cols]."""
    multiply(x, down, up, (adapter[:, None], None), y, **tunables)


def launch_mixture(*, x, down, up, adapter, weight, y, **tunables):
    """The same of a mixture: adapter and weight [tokens, top_k]."""
    multiply(x, down, up, (adapter, weight), y, **tunables)


def multiply(x, down, up, choice, y, *, BLOCK_K, BLOCK_N, SPLIT, num_warps, num_stages):
    """`choice`: adapters[tokens, top_k] and their weights, or None."""
    adapter, weight = choice
    (tokens, top_k), depth = adapter.shape, x.shape[1]
    rank, cols = up.shape[1:]
    if tokens == 0 or cols == 0:
        return
    hidden = torch.empty((tokens * top_k, SPLIT, rank), dtype=torch.float32, device=y.device)
    block = triton.next_power_of_2(max(rank, 1))
    part = triton.cdiv(triton.cdiv(depth, BLOCK_K), SPLIT) * BLOCK_K
    shrink[(tokens * top_k, SPLIT)](
        x, down, adapter, hidden, depth, rank, part, x.stride(0),
        TOP_K=top_k, RANK=block, BLOCK_K=BLOCK_K, STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
    expand[(tokens, triton.cdiv(cols, BLOCK_N))](
        hidden, up, adapter, weight, y, rank, cols,
        TOP_K=top_k, PARTS=SPLIT, RANK=block, BLOCK_N=BLOCK_N, num_warps=num_warps,
    )  # fmt: skip
