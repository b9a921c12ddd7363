"""One step of AdamW in Triton (Loshchilov and Hutter 2019, arXiv:1711.05101).

1. FUSE: a program reads parameters, gradients and moments of BLOCK elements once and writes all three
   results. Without it there is a launch for each result, and the last one reads the moments again.
2. Corrections of the bias are computed on the host, once.

Bound by memory bandwidth. Arithmetic is float32, as the moments are.
"""

import triton
import triton.language as tl


@triton.jit
def change(m, v, step_size, root_factor, eps):
    """What the moments after the step change a parameter by, the sign aside."""
    return step_size * m / (tl.sqrt(v) * root_factor + eps)


@triton.jit
def adamw(
    p, g, m, v, p_out, m_out, v_out, total, beta1, beta2, one_minus_beta1, one_minus_beta2,
    step_size, root_factor, eps, decay,
    FIRST: tl.constexpr, SECOND: tl.constexpr, PARAMETERS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """p, g, m, v [total] -> the results; moments that are not computed here are read."""
    offset = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < total
    gradient = tl.load(g + offset, mask=mask, other=0.0).to(tl.float32)
    if FIRST:
        first = beta1 * tl.load(m + offset, mask=mask, other=0.0) + one_minus_beta1 * gradient
        tl.store(m_out + offset, first, mask=mask)
    elif PARAMETERS:
        first = tl.load(m_out + offset, mask=mask, other=0.0)
    if SECOND:
        second = beta2 * tl.load(v + offset, mask=mask, other=0.0) + one_minus_beta2 * gradient * gradient
        tl.store(v_out + offset, second, mask=mask)
    elif PARAMETERS:
        second = tl.load(v_out + offset, mask=mask, other=0.0)
    if PARAMETERS:
        values = tl.load(p + offset, mask=mask, other=0.0).to(tl.float32)
        result = values - decay * values - change(first, second, step_size, root_factor, eps)
        tl.store(p_out + offset, result.to(p_out.dtype.element_ty), mask=mask)


def launch(
    *, p, g, m, v, p_out, m_out, v_out, lr, beta1, beta2, eps, weight_decay, step, FUSE, BLOCK, num_warps
):  # fmt: skip
    """p, g, m, v [rows, cols], m and v in float32 -> p_out, m_out, v_out."""
    total = p.numel()
    if not total:
        return
    step_size, root_factor = lr / (1 - beta1**step), (1 - beta2**step) ** -0.5
    together = ((True, True, True),)
    apart = ((True, False, False), (False, True, False), (False, False, True))
    for first, second, parameters in together if FUSE else apart:
        adamw[(triton.cdiv(total, BLOCK),)](
            p, g, m, v, p_out, m_out, v_out, total, beta1, beta2, 1 - beta1, 1 - beta2,
            step_size, root_factor, eps, lr * weight_decay,
            FIRST=first, SECOND=second, PARAMETERS=parameters, BLOCK=BLOCK, num_warps=num_warps,
        )  # fmt: skip
