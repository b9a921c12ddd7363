"""Linear attention within windows of any sizes in Triton: o_t = (q_t S) / (q_t s + eps) with S = sum of
k_i^T v_i and s = sum of k_i over the tokens of a window, q and k cut off at 0 (He et al. 2024,
arXiv:2401.00912).

Tokens are one flat list, in which a program walks over those of one window and head twice, CHUNK at a time:
for BLOCK_V columns of S, which stay in registers, and for o. Windows are neither sorted nor padded. All
products use matrix units and sums are float32; S is rounded to the type of the inputs before it is
multiplied. A window is one program's work, however large it is.
"""

import triton
import triton.language as tl


@triton.jit
def attend(
    q, k, v, ends, o, heads, depth, eps,
    CHUNK: tl.constexpr, BLOCK_V: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q, k, v [tokens, heads, depth], ends[windows] -> o as q; DEPTH >= depth."""
    window, head = tl.program_id(1), tl.program_id(2)
    begin = tl.load(ends + window - 1, mask=window > 0, other=0)
    end = tl.load(ends + window)
    column = tl.arange(0, DEPTH)
    wanted = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    place = tl.arange(0, CHUNK)
    state = tl.zeros([DEPTH, BLOCK_V], tl.float32)
    sums = tl.zeros([DEPTH], tl.float32)
    for start in tl.range(begin, end, CHUNK, num_stages=STAGES):
        token = start + place
        row = (token.to(tl.int64) * heads + head) * depth
        known = (token < end)[:, None] & (column < depth)[None, :]
        inside = (token < end)[:, None] & (wanted < depth)[None, :]
        keys = tl.load(k + row[:, None] + column[None, :], mask=known, other=0.0)
        keys = tl.where(keys > 0.0, keys, 0.0).to(q.dtype.element_ty)
        values = tl.load(v + row[:, None] + wanted[None, :], mask=inside, other=0.0)
        state = tl.dot(tl.trans(keys), values, state, input_precision="ieee")
        sums += tl.sum(keys.to(tl.float32), 0)
    held = state.to(q.dtype.element_ty)
    for start in tl.range(begin, end, CHUNK, num_stages=STAGES):
        token = start + place
        row = (token.to(tl.int64) * heads + head) * depth
        known = (token < end)[:, None] & (column < depth)[None, :]
        inside = (token < end)[:, None] & (wanted < depth)[None, :]
        queries = tl.load(q + row[:, None] + column[None, :], mask=known, other=0.0)
        queries = tl.where(queries > 0.0, queries, 0.0).to(q.dtype.element_ty)
        result = tl.dot(queries, held, input_precision="ieee")
        weight = tl.sum(queries.to(tl.float32) * sums[None, :], 1) + eps
        tl.store(
            o + row[:, None] + wanted[None, :], (result / weight[:, None]).to(o.dtype.element_ty), mask=inside
        )


def launch(*, q, k, v, ends, o, eps, CHUNK, BLOCK_V, num_warps, num_stages):
    """q, k, v [tokens, heads, depth], ends[windows] -> o as q."""
    _, heads, depth = q.shape
    if not q.numel():
        return
    attend[(triton.cdiv(depth, BLOCK_V), len(ends), heads)](
        q, k, v, ends, o, heads, depth, eps,
        CHUNK=CHUNK, BLOCK_V=BLOCK_V, DEPTH=max(16, triton.next_power_of_2(depth)), STAGES=num_stages,
        num_warps=num_warps,
    )  # fmt: skip
