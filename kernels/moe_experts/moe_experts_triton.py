"""Experts of a mixture in Triton: grouped products over rows that are sorted by expert on the device.

A token that names top_k experts has as many rows in the products.

1. `sort_rows` sorts the rows by expert and cuts them into tiles of BLOCK_M rows of one expert. Each program
   counts the rows of lower experts by itself, and each expert's tiles have a place that only that count
   decides. So one launch is enough, without atomics, and equal inputs give equal bits. Every expert reads all
   routes, which is little next to its weights.
2. `multiply` computes one BLOCK_M x BLOCK_N tile of the product with one expert's weights (`tl.dot`; Gale et
   al. 2022, arXiv:2211.15841). The grid has room for any balance of the experts; programs without rows end at
   once. Neighbouring programs have the same columns, so tiles of one expert share its weights in L2.
3. FUSE: one program multiplies with w_gate and w_up, and applies SiLU while both are in registers. Without it
   both products are stored, and `activate` reads them again.
4. num_stages > 1 loads the tiles of later steps while this one is multiplied.
5. `combine` adds up the weighted results of each token's experts, in order.

Decoding is bound by the bandwidth of the weights, each of which is read once for every BLOCK_M rows. float32
is multiplied in full (`ieee`). Hidden values have the type of x, but float32 for float16, whose range the
product of two numbers may leave.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def sort_rows(expert, order, tiles, rows, BLOCK_M: tl.constexpr, BLOCK: tl.constexpr):
    """expert[rows] -> order[rows], tiles[slots, 3]: expert, first row and end in the order of experts.

    The tiles of expert e begin at slot `first // BLOCK_M + e`: lower ones cannot need more. What is left of
    the slots before the next expert's has no rows.
    """
    each = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    less = tl.zeros([BLOCK], tl.int32)
    equal = tl.zeros([BLOCK], tl.int32)
    for start in range(0, rows, BLOCK):
        named = tl.load(expert + start + lane, mask=start + lane < rows, other=tl.num_programs(0))
        less += (named < each).to(tl.int32)
        equal += (named == each).to(tl.int32)
    first = tl.sum(less, axis=0)
    end = first + tl.sum(equal, axis=0)
    slot = tiles + 3 * (first // BLOCK_M + each)
    for row in range(first, (end // BLOCK_M - first // BLOCK_M + 1) * BLOCK_M + first, BLOCK_M):
        tl.store(slot, each)
        tl.store(slot + 1, row)
        tl.store(slot + 2, end)
        slot += 3
    for start in range(0, rows, BLOCK):
        named = tl.load(expert + start + lane, mask=start + lane < rows, other=tl.num_programs(0))
        mine = (named == each).to(tl.int32)
        tl.store(order + first + tl.cumsum(mine, axis=0) - 1, start + lane, mask=mine != 0)
        first += tl.sum(mine, axis=0)


@triton.jit
def multiply(
    x, order, tiles, weights, others, out, depth, cols, x_stride, top_k,
    GATHER: tl.constexpr, GATED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x times weights[expert, depth, cols] -> out[rows, cols].

    GATHER: x has a row for each token, and out is in the order of experts; else x is in that order, and out
    in that of the tokens. GATED: silu(x weights) * (x others).
    """
    tile = tiles + 3 * tl.program_id(0)
    row = tl.load(tile + 1) + tl.arange(0, BLOCK_M)
    there = row < tl.load(tile + 2)
    if tl.load(tile + 1) >= tl.load(tile + 2):
        return
    token = tl.load(order + row, mask=there, other=0)
    source = (token // top_k if GATHER else row).to(tl.int64)
    target = (row if GATHER else token).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_place = x + source[:, None] * x_stride + k[None, :]
    place = tl.load(tile).to(tl.int64) * depth * cols + k[:, None].to(tl.int64) * cols + n[None, :]
    step = tl.cast(cols, tl.int64) * BLOCK_K
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    more = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(0, depth, BLOCK_K, num_stages=STAGES):
        inside = (start + k < depth)[:, None] & (n < cols)[None, :]
        left = tl.load(x_place + start, mask=there[:, None] & (start + k < depth)[None, :], other=0.0)
        right = tl.load(weights + place, mask=inside, other=0.0).to(left.dtype)
        sums = tl.dot(left, right, sums, input_precision="ieee")
        if GATED:
            right = tl.load(others + place, mask=inside, other=0.0)
            more = tl.dot(left, right, more, input_precision="ieee")
        place += step
    if GATED:
        sums = sums / (1.0 + tl.exp(-sums)) * more
    out_place = out + target[:, None] * cols + n[None, :]
    tl.store(out_place, sums.to(out.dtype.element_ty), mask=there[:, None] & (n < cols)[None, :])


@triton.jit
def activate(gate, up, hidden, total, BLOCK: tl.constexpr):
    """gate, up[total] -> hidden[total]."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < total, other=0.0)
    result = g / (1.0 + tl.exp(-g)) * tl.load(up + at, mask=at < total, other=0.0)
    tl.store(hidden + at, result.to(hidden.dtype.element_ty), mask=at < total)


@triton.jit
def combine(parts, weight, y, depth, top_k, BLOCK: tl.constexpr):
    """parts[tokens, top_k, depth], weight[tokens, top_k] -> y[tokens, depth]."""
    token = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for row in range(top_k):
        part = tl.load(parts + (token * top_k + row) * depth + col, mask=col < depth, other=0.0)
        sums += tl.load(weight + token * top_k + row).to(tl.float32) * part
    tl.store(y + token * depth + col, sums.to(y.dtype.element_ty), mask=col < depth)


def launch(
    *, x, expert, weight, w_gate, w_up, w_down, y, BLOCK_M, BLOCK_N, BLOCK_K, FUSE, num_warps, num_stages
):  # fmt: skip
    """x[tokens, depth] with any row stride, the others as in the reference -> y[tokens, depth]."""
    tokens, depth = x.shape
    experts, _, width = w_gate.shape
    top_k = expert.shape[1]
    rows = tokens * top_k
    if tokens == 0 or depth == 0:
        return
    slots = rows // BLOCK_M + experts
    order = torch.empty(rows, dtype=torch.int32, device=y.device)
    tiles = torch.empty((slots, 3), dtype=torch.int32, device=y.device)
    sort_rows[(experts,)](expert, order, tiles, rows, BLOCK_M=BLOCK_M, BLOCK=1024)

    def product(left, stride, weights, others, dtype, **forms):
        inner, cols = weights.shape[1:]
        out = torch.empty((rows, cols), dtype=dtype, device=y.device)
        multiply[(slots, triton.cdiv(cols, BLOCK_N))](
            left, order, tiles, weights, others, out, inner, cols, stride, top_k,
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, STAGES=num_stages,
            num_warps=num_warps, **forms,
        )  # fmt: skip
        return out

    kind = torch.float32 if x.dtype == torch.float16 else x.dtype
    if FUSE:
        hidden = product(x, x.stride(0), w_gate, w_up, kind, GATHER=True, GATED=True)
    else:
        gate, up = (
            product(x, x.stride(0), weights, weights, torch.float32, GATHER=True, GATED=False)
            for weights in (w_gate, w_up)
        )
        hidden = torch.empty((rows, width), dtype=kind, device=y.device)
        activate[(triton.cdiv(rows * width, 1024),)](gate, up, hidden, rows * width, BLOCK=1024)
    parts = product(hidden, width, w_down, w_down, torch.float32, GATHER=False, GATED=False)
    combine[(tokens, triton.cdiv(depth, 256))](parts, weight, y, depth, top_k, BLOCK=256)
