"""One step of decoding over keys and values in pages in Triton: o = softmax(q k^T / sqrt(depth)) v.

A program has one sequence and one head of keys, whose group of queries are the rows of its products. It walks
over BLOCK_K keys at a time, each of which it finds through the table of pages (Kwon et al. 2023,
arXiv:2309.06180). Bound by the traffic of keys and values.

1. Scores stay in registers: a running maximum and sum of each row scale what was accumulated.
2. SPLIT: few sequences have few programs, which do not fill a device. Parts of the keys are given to programs
   of their own, and a second kernel combines what they found (Dao et al. 2023, "Flash-Decoding for
   long-context inference").
3. num_stages: the next keys and values are loaded while these are multiplied.
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def attend(
    q, k, v, table, length, o, found, scales, heads, groups, depth, columns, page, scale,
    SPLIT: tl.constexpr, ROWS: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """-> o as q; SPLIT > 1: found[tasks, SPLIT, ROWS, DEPTH], scales[tasks, SPLIT, 2, ROWS]."""
    task = tl.program_id(0).to(tl.int64)  # sequence * heads + head
    sequence, head = task // heads, task % heads
    row, column = tl.arange(0, ROWS), tl.arange(0, DEPTH)
    inside = (row < groups)[:, None] & (column < depth)[None, :]
    place = (task * groups + row[:, None]) * depth + column[None, :]
    left = tl.load(q + place, mask=inside, other=0.0)
    keys = tl.load(length + sequence)
    part = tl.cdiv(tl.cdiv(keys, BLOCK_K), SPLIT) * BLOCK_K
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, keys)
    largest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, DEPTH], tl.float32)
    for start in tl.range(first, last, BLOCK_K, num_stages=STAGES):
        key = start + tl.arange(0, BLOCK_K)
        there = key < last
        number = tl.load(table + sequence * columns + key // page, mask=there, other=0).to(tl.int64)
        at = ((number * page + key % page) * heads + head)[:, None] * depth + column[None, :]
        mask = there[:, None] & (column < depth)[None, :]
        right = tl.load(k + at, mask=mask, other=0.0)
        scores = tl.dot(left, tl.trans(right), input_precision="ieee") * scale
        scores = tl.where(there[None, :], scores, float("-inf"))
        top = tl.maximum(largest, tl.max(scores, axis=1))
        base = tl.where(top == float("-inf"), 0.0, top)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(v + at, mask=mask, other=0.0)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None], input_precision="ieee")
        largest = top
    if SPLIT == 1:
        tl.store(o + place, (result / total[:, None]).to(o.dtype.element_ty), mask=inside)
    else:
        number_of_part = task * SPLIT + tl.program_id(1)
        tl.store(found + (number_of_part * ROWS + row[:, None]) * DEPTH + column[None, :], result)
        tl.store(scales + number_of_part * 2 * ROWS + row, largest)
        tl.store(scales + (number_of_part * 2 + 1) * ROWS + row, total)


@triton.jit
def combine(
    found, scales, o, groups, depth, SPLIT: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """found[tasks, SPLIT, ROWS, DEPTH], scales[tasks, SPLIT, 2, ROWS] -> o[tasks, groups, depth]."""
    task = tl.program_id(0).to(tl.int64)
    row, column = tl.arange(0, ROWS), tl.arange(0, DEPTH)
    top = tl.full([ROWS], float("-inf"), tl.float32)
    for part in range(SPLIT):
        top = tl.maximum(top, tl.load(scales + (task * SPLIT + part) * 2 * ROWS + row))
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, DEPTH], tl.float32)
    for part in range(SPLIT):
        number = task * SPLIT + part
        shrink = tl.exp2(tl.load(scales + number * 2 * ROWS + row) - top)
        total += tl.load(scales + (number * 2 + 1) * ROWS + row) * shrink
        result += tl.load(found + (number * ROWS + row[:, None]) * DEPTH + column[None, :]) * shrink[:, None]
    inside = (row < groups)[:, None] & (column < depth)[None, :]
    place = (task * groups + row[:, None]) * depth + column[None, :]
    tl.store(o + place, (result / total[:, None]).to(o.dtype.element_ty), mask=inside)


def launch(*, q, k, v, table, length, o, SPLIT, BLOCK_K, num_warps, num_stages):
    """q[sequences, heads, groups, depth], k, v [pages, page, heads, depth] and their table -> o as q."""
    sequences, heads, groups, depth = q.shape
    if not q.numel():
        return
    tasks, rows, width = (
        sequences * heads,
        max(16, triton.next_power_of_2(groups)),
        triton.next_power_of_2(depth),
    )
    width = max(16, width)
    found, scales = o, o
    if SPLIT > 1:
        found = torch.empty(tasks * SPLIT * rows * width, dtype=torch.float32, device=q.device)
        scales = torch.empty(tasks * SPLIT * 2 * rows, dtype=torch.float32, device=q.device)
    attend[(tasks, SPLIT)](
        q, k, v, table, length, o, found, scales, heads, groups, depth, table.shape[1], k.shape[1],
        LOG2_E * depth**-0.5,
        SPLIT=SPLIT, ROWS=rows, BLOCK_K=BLOCK_K, DEPTH=width, STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
    if SPLIT > 1:
        combine[(tasks,)](found, scales, o, groups, depth, SPLIT=SPLIT, ROWS=rows, DEPTH=width)
