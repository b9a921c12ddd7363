"""The blocks of keys that each block of queries keeps, of the children of listed parents, in Triton.

One level of log-linear sparse attention's selection (LLSA: Zhou et al. 2025, arXiv:2512.16615). A program has
the queries of one parent, which share its list, and multiplies them with the children of STEP listed parents
at a time. Then each row moves its largest score to where its smallest kept one was, as long as that is larger
in any row: most candidates are never looked at one by one. What is kept has no order: attention needs none.
"""

import triton
import triton.language as tl

from kernels.attention.tile import blocks_of, columns_of, listed_keys, score_keys


@triton.jit
def select(
    q, k, parents, index, queries, keys, depth, listed, kept,
    BLOCK: tl.constexpr, KEPT: tl.constexpr, STEP: tl.constexpr, DEPTH: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """q[batch, queries, depth], k[batch, keys, depth], parents[batch, their parents, listed] -> index."""
    batch = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = query < queries
    place = batch * queries + query
    left = columns_of(q, place, depth, inside, 0, DEPTH)
    left_rest = left
    if REST:
        left_rest = columns_of(q, place, depth, inside, DEPTH, REST)
    names = parents + (batch * tl.num_programs(0) + tl.program_id(0)) * listed
    slot = tl.arange(0, KEPT)
    # Slots beyond `kept` are never the smallest.
    best = tl.zeros([BLOCK, KEPT], tl.float32) + tl.where(slot < kept, float("-inf"), float("inf"))[None, :]
    chosen = tl.zeros([BLOCK, KEPT], tl.int32)
    lane = tl.arange(0, BLOCK * STEP)
    for start in range(0, listed, STEP):
        key, there = listed_keys(names, start, listed, keys, BLOCK, STEP)
        scores = score_keys(left, left_rest, k, batch * keys + key, there, depth, DEPTH, REST)
        scores = tl.where(there[None, :], scores, float("-inf"))
        improved = True
        while improved:
            top, column = tl.max(scores, axis=1, return_indices=True)
            worst, at = tl.min(best, axis=1, return_indices=True)
            better = top > worst
            name = tl.load(names + start + column // BLOCK, mask=better, other=0) * BLOCK + column % BLOCK
            taken = better[:, None] & (slot[None, :] == at[:, None])
            best = tl.where(taken, top[:, None], best)
            chosen = tl.where(taken, name[:, None], chosen)
            scores = tl.where(lane[None, :] == column[:, None], float("-inf"), scores)
            improved = tl.max(better.to(tl.int32), axis=0) > 0
    mask = inside[:, None] & (slot < kept)[None, :]
    tl.store(index + place[:, None] * kept + slot[None, :], chosen, mask=mask)


def launch(*, q, k, parents, index, block, kept, STEP, num_warps):
    """q[batch, queries, depth], k[batch, keys, depth], parents[batch, their parents, listed] -> index."""
    batch, queries, depth = q.shape
    if not index.numel():
        return
    sizes = {name: size for name, size in blocks_of(depth, depth).items() if name != "VALUES"}
    select[(triton.cdiv(queries, block), batch)](
        q, k, parents, index, queries, k.shape[1], depth, parents.shape[2], index.shape[2],
        BLOCK=block, KEPT=triton.next_power_of_2(kept), STEP=STEP, **sizes, num_warps=num_warps,
    )  # fmt: skip
