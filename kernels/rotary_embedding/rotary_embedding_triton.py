"""Rotary position embedding in Triton: a program turns HEADS heads of one token, both halves of each at once.

1. FUSE: queries and keys are heads of one grid, so one launch serves both, and a token's programs share its
   cos and sin in L2 (Hsu et al. 2024, arXiv:2410.10989). Without it there are two launches.
2. HEADS heads of a program use the cos and sin that it has in registers.

Bound by memory bandwidth. The backward pass turns by the negative angle. Arithmetic is float32.
"""

import triton
import triton.language as tl


@triton.jit
def _rotate(x, out, cos, sin, token, first_head, heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    """Heads first_head .. first_head + HEADS of a token of x[tokens, heads, 2, half]; cos, sin [HALF]."""
    head = first_head + tl.arange(0, HEADS)
    i = tl.arange(0, HALF)
    mask = (head < heads)[:, None] & (i < half)[None, :]
    place = (token * heads + head)[:, None] * (2 * half) + i[None, :]
    left = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
    right = tl.load(x + place + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + place, (left * cos - right * sin).to(out.dtype.element_ty), mask=mask)
    tl.store(out + place + half, (right * cos + left * sin).to(out.dtype.element_ty), mask=mask)


@triton.jit
def rotate_heads(
    q, k, cos, sin, q_out, k_out, heads, kv_heads, half,
    BACKWARD: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """One program a token and HEADS heads, those of q before those of k; HALF >= half."""
    token = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, HALF)
    turn_cos = tl.load(cos + token * half + i, mask=i < half, other=0.0).to(tl.float32)[None, :]
    turn_sin = tl.load(sin + token * half + i, mask=i < half, other=0.0).to(tl.float32)[None, :]
    if BACKWARD:
        turn_sin = -turn_sin
    block = tl.program_id(1)
    q_blocks = tl.cdiv(heads, HEADS)
    if block < q_blocks:
        _rotate(q, q_out, turn_cos, turn_sin, token, block * HEADS, heads, half, HEADS, HALF)
    else:
        _rotate(k, k_out, turn_cos, turn_sin, token, (block - q_blocks) * HEADS, kv_heads, half, HEADS, HALF)


def launch(*, q, k, cos, sin, q_out, k_out, direction, HEADS, FUSE, num_warps):
    """q[tokens, heads, 2, half], k[tokens, kv_heads, 2, half], cos, sin [tokens, half] -> q_out, k_out."""
    tokens, heads, _, half = q.shape
    kv_heads = k.shape[1]
    if not tokens or not half:
        return
    counts = ((heads, kv_heads),) if FUSE else ((heads, 0), (0, kv_heads))
    for q_heads, k_heads in counts:
        blocks = triton.cdiv(q_heads, HEADS) + triton.cdiv(k_heads, HEADS)
        if blocks:
            rotate_heads[(tokens, blocks)](
                q, k, cos, sin, q_out, k_out, q_heads, k_heads, half,
                BACKWARD=direction == "backward", HEADS=HEADS, HALF=triton.next_power_of_2(half),
                num_warps=num_warps,
            )  # fmt: skip
