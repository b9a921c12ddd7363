"""One step of decoding over keys and values in pages in Triton: o = softmax(q k^T / sqrt(depth)) v.

A program has one sequence and one head of keys, and ROWS of its group of queries as the rows of its products.
It walks over BLOCK_K keys at a time, each of which it finds through the table of pages (Kwon et al. 2023,
arXiv:2309.06180). Bound by the traffic of keys and values, if the group is small.

1. Scores stay in registers: a running maximum and sum of each row scale what was accumulated.
2. SPLIT: few sequences have few programs, which do not fill a device. Parts of the keys are given to programs
   of their own, and a second kernel combines what they found (Dao et al. 2023, "Flash-Decoding for
   long-context inference").
3. num_stages: the next keys and values are loaded while these are multiplied.

`launch_latent` is for latent attention with absorbed weights (DeepSeek-AI 2024, arXiv:2405.04434): all heads
share one key per position, whose latent part is its value as well. REUSE takes the values from the keys that
were loaded, instead of loading them again.
"""

import torch
import triton
import triton.language as tl

from kernels.attention.tile import columns_of

LOG2_E = 1.4426950408889634


@triton.jit
def attend(
    q, k, v, q_rope, k_rope, table, length, o, found, scales, heads, groups, depth, rope, columns, page,
    scale, REUSE: tl.constexpr, SPLIT: tl.constexpr, ROWS: tl.constexpr, BLOCK_K: tl.constexpr,
    DEPTH: tl.constexpr, ROPE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """-> o as q; SPLIT > 1: found[tasks, SPLIT, groups, DEPTH], scales[tasks, SPLIT, 2, groups].

    ROPE: more columns of queries and keys, which values do not have. REUSE: values are the keys.
    """
    task = tl.program_id(0).to(tl.int64)  # sequence * heads + head
    sequence, head = task // heads, task % heads
    row = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    known = row < groups
    left = columns_of(q, task * groups + row, depth, known, 0, DEPTH)
    if ROPE:
        left_rope = columns_of(q_rope, task * groups + row, rope, known, 0, ROPE)
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
        at = (number * page + key % page) * heads + head
        right = columns_of(k, at, depth, there, 0, DEPTH)
        scores = tl.dot(left, tl.trans(right), input_precision="ieee")
        if ROPE:
            right_rope = columns_of(k_rope, at, rope, there, 0, ROPE)
            scores = tl.dot(left_rope, tl.trans(right_rope), scores, input_precision="ieee")
        scores = tl.where(there[None, :], scores * scale, float("-inf"))
        top = tl.maximum(largest, tl.max(scores, axis=1))
        base = tl.where(top == float("-inf"), 0.0, top)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(weights, axis=1)
        values = right if REUSE else columns_of(v, at, depth, there, 0, DEPTH)
        result = tl.dot(weights.to(values.dtype), values, result * shrink[:, None], input_precision="ieee")
        largest = top
    column = tl.arange(0, DEPTH)
    inside = known[:, None] & (column < depth)[None, :]
    if SPLIT == 1:
        place = (task * groups + row[:, None]) * depth + column[None, :]
        tl.store(o + place, (result / total[:, None]).to(o.dtype.element_ty), mask=inside)
    else:
        number_of_part = task * SPLIT + tl.program_id(1)
        place = (number_of_part * groups + row[:, None]) * DEPTH + column[None, :]
        tl.store(found + place, result, mask=inside)
        tl.store(scales + number_of_part * 2 * groups + row, largest, mask=known)
        tl.store(scales + (number_of_part * 2 + 1) * groups + row, total, mask=known)


@triton.jit
def combine(found, scales, o, groups, depth, SPLIT: tl.constexpr, DEPTH: tl.constexpr):
    """found[tasks, SPLIT, groups, DEPTH], scales[tasks, SPLIT, 2, groups] -> o[tasks, groups, depth]."""
    task, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    part = tl.arange(0, SPLIT)
    largest = tl.load(scales + (task * SPLIT + part) * 2 * groups + row)
    shrink = tl.exp2(largest - tl.max(largest, axis=0))
    total = tl.sum(tl.load(scales + ((task * SPLIT + part) * 2 + 1) * groups + row) * shrink, axis=0)
    column = tl.arange(0, DEPTH)
    place = ((task * SPLIT + part) * groups + row)[:, None] * DEPTH + column[None, :]
    wanted = column < depth
    parts = tl.load(found + place, mask=wanted[None, :], other=0.0)
    result = tl.sum(parts * shrink[:, None], axis=0) / total
    tl.store(o + (task * groups + row) * depth + column, result.to(o.dtype.element_ty), mask=wanted)


def launch(*, q, k, v, table, length, o, SPLIT, BLOCK_K, num_warps, num_stages):
    """q[sequences, heads, groups, depth], k, v [pages, page, heads, depth] and their table -> o as q."""
    rows = max(16, triton.next_power_of_2(q.shape[2]))
    settings = {"REUSE": False, "SPLIT": SPLIT, "ROWS": rows, "BLOCK_K": BLOCK_K, "STAGES": num_stages}
    start((q, k, v, q, k, table, length, o), 0, LOG2_E * q.shape[-1] ** -0.5, settings, num_warps)


def launch_latent(
    *, q, q_rope, c, k_rope, table, length, o, scale, REUSE, ROWS, SPLIT, BLOCK_K, num_warps, num_stages
):  # fmt: skip
    """q[sequences, heads, latent], c[pages, page, latent], q_rope, k_rope likewise -> o as q."""
    settings = {"REUSE": REUSE, "SPLIT": SPLIT, "ROWS": ROWS, "BLOCK_K": BLOCK_K, "STAGES": num_stages}
    q, o, c = q[:, None], o[:, None], c[:, :, None]
    tensors = (q, c, c, q_rope, k_rope, table, length, o)
    start(tensors, q_rope.shape[-1], LOG2_E * scale, settings, num_warps)


def start(tensors, rope, scale, settings, num_warps):
    """Attend, and combine the parts if there are several."""
    q, k, *_, table, _, o = tensors
    sequences, heads, groups, depth = q.shape
    if not q.numel():
        return
    tasks, split, width = sequences * heads, settings["SPLIT"], max(16, triton.next_power_of_2(depth))
    found, scales = o, o
    if split > 1:
        found = torch.empty(tasks * split * groups * width, dtype=torch.float32, device=q.device)
        scales = torch.empty(tasks * split * 2 * groups, dtype=torch.float32, device=q.device)
    attend[(tasks, split, triton.cdiv(groups, settings["ROWS"]))](
        *tensors, found, scales, heads, groups, depth, rope, table.shape[1], k.shape[1], scale, **settings,
        DEPTH=width, ROPE=max(16, triton.next_power_of_2(rope)) if rope else 0, num_warps=num_warps,
    )  # fmt: skip
    if split > 1:
        combine[(tasks, groups)](found, scales, o, groups, depth, SPLIT=split, DEPTH=width)
