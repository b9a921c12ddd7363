"""One step of AdamW with moments in 8 bits, in Triton (Dettmers et al. 2021, arXiv:2110.02861).

1. A program has ROWS blocks, each a row: it reads parameters, gradients and codes, takes the step, finds the
   largest moments of each row, and writes codes. Moments in float32 never reach memory: with parameters in
   16 bits, 10 bytes of an element travel, where moments in float32 make it 22.
2. Codes are computed, in both directions: the digits of the float 2 place + 1 are the power of ten and the
   number within it; a place follows from six comparisons. A table of 256 values would be gathered from
   shared memory, with conflicts.

Bound by memory bandwidth while the arithmetic of the codes, about 60 instructions for an element, hides
behind it. Largest moments are compared as integers, in whose order NaN is above infinity.
"""

import triton
import triton.language as tl

from kernels.adamw.adamw_triton import change


@triton.jit
def decode(code, SIGNED: tl.constexpr):
    """Codes of 8 bits -> values of the code book, in float32."""
    ONE: tl.constexpr = 128 if SIGNED else 256
    FIRST: tl.constexpr = 1 if SIGNED else 2
    number = code.to(tl.int32)
    place = tl.abs(number - 127) if SIGNED else number + 1
    digits = (2 * place + 1).to(tl.float32).to(tl.int32, bitcast=True)
    power = tl.where(place >= 2 * FIRST, 1e-5, 1e-6)
    power = tl.where(place >= 4 * FIRST, 1e-4, power)
    power = tl.where(place >= 8 * FIRST, 1e-3, power)
    power = tl.where(place >= 16 * FIRST, 1e-2, power)
    power = tl.where(place >= 32 * FIRST, 1e-1, power)
    power = tl.where(place >= 64 * FIRST, 1.0, power)
    share = ((digits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0
    value = tl.where(place < FIRST, 0.0, (0.1 + 0.9 * share) * power)
    value = tl.where(place == ONE, 1.0, value)
    return tl.where(number < 127, -value, value) if SIGNED else value


@triton.jit
def _from(size, low, inverse, first, START: tl.constexpr, NUMBERS: tl.constexpr):
    """What holds of sizes from START on: where numbers begin, one over their distance, the first place."""
    above = size >= START
    inverse = tl.where(above, NUMBERS / (9.0 * START), inverse)
    return tl.where(above, START, low), inverse, tl.where(above, NUMBERS, first)


@triton.jit
def encode(share, SIGNED: tl.constexpr):
    """Values in [-1, 1] -> the nearest codes; 255 for NaN."""
    FIRST: tl.constexpr = 1 if SIGNED else 2  # numbers of the lowest power
    ZERO: tl.constexpr = 0.275e-6 if SIGNED else 0.1625e-6  # below it, 0 is nearest
    NEXT: tl.constexpr = 2e-6 if SIGNED else 0.55e-6  # the edge of the first number, or beyond its power
    DISTANCE: tl.constexpr = 0.9 / 64 / FIRST  # of the highest numbers
    known = share == share  # noqa: PLR0124  (not NaN)
    size = tl.abs(tl.where(known, share, 0.0))
    # A place is 0.2 or more of a distance behind the begin of its power, or the last one of the power before.
    low = tl.full(size.shape, NEXT - (NEXT - ZERO) / 0.8, tl.float32)
    inverse = tl.full(size.shape, 0.8 / (NEXT - ZERO), tl.float32)
    first = tl.full(size.shape, FIRST, tl.int32)
    low, inverse, first = _from(size, low, inverse, first, 1e-6, 2 * FIRST)
    low, inverse, first = _from(size, low, inverse, first, 1e-5, 4 * FIRST)
    low, inverse, first = _from(size, low, inverse, first, 1e-4, 8 * FIRST)
    low, inverse, first = _from(size, low, inverse, first, 1e-3, 16 * FIRST)
    low, inverse, first = _from(size, low, inverse, first, 1e-2, 32 * FIRST)
    low, inverse, first = _from(size, low, inverse, first, 1e-1, 64 * FIRST)
    steps = (tl.minimum(size, 1.0 - DISTANCE / 8) - low) * inverse
    place = first + steps.to(tl.int32) - (steps < 0.2).to(tl.int32)
    place += (size >= 1.0 - DISTANCE / 4).to(tl.int32)
    # There is no -1.
    code = tl.maximum(127 + tl.where(share < 0.0, -place, place), 0) if SIGNED else place - 1
    return tl.where(known, code, 255)


@triton.jit
def _store(values, scale_out, code_out, row, place, present, rows, SIGNED: tl.constexpr):
    """Codes and scales of values[ROWS, BLOCK], which are 0 beyond a row's end."""
    bits = values.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    scale = tl.max(bits, axis=1).to(tl.float32, bitcast=True)
    tl.store(scale_out + row, scale, mask=row < rows)
    inverse = 1.0 / tl.where(scale < 1.17549435e-38, 1.17549435e-38, scale)
    code = encode(values * inverse[:, None], SIGNED)
    tl.store(code_out + place, code.to(tl.uint8), mask=present)


@triton.jit
def adamw_8bit(
    p, g, m_code, m_scale, v_code, v_scale, p_out, m_code_out, m_scale_out, v_code_out, v_scale_out,
    rows, block, beta1, beta2, one_minus_beta1, one_minus_beta2, step_size, root_factor, eps, decay,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """p, g, codes [rows, block], scales [rows] -> the same after the step."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    place = row[:, None] * block + column[None, :]
    present = (row < rows)[:, None] & (column < block)[None, :]
    gradient = tl.load(g + place, mask=present, other=0.0).to(tl.float32)
    before = decode(tl.load(m_code + place, mask=present, other=127), True)
    first_scale = tl.load(m_scale + row, mask=row < rows, other=0.0)
    first = beta1 * (before * first_scale[:, None]) + one_minus_beta1 * gradient
    square = decode(tl.load(v_code + place, mask=present, other=0), False)
    second_scale = tl.load(v_scale + row, mask=row < rows, other=0.0)
    second = beta2 * (square * second_scale[:, None]) + one_minus_beta2 * gradient * gradient
    # A scale that is not finite makes NaN of the 0 beyond a row's end.
    first = tl.where(present, first, 0.0)
    second = tl.where(present, second, 0.0)
    values = tl.load(p + place, mask=present, other=0.0).to(tl.float32)
    result = values - decay * values - change(first, second, step_size, root_factor, eps)
    tl.store(p_out + place, result.to(p_out.dtype.element_ty), mask=present)
    _store(first, m_scale_out, m_code_out, row, place, present, rows, True)
    _store(second, v_scale_out, v_code_out, row, place, present, rows, False)


def launch(
    *, p, g, m_code, m_scale, v_code, v_scale, p_out, m_code_out, m_scale_out, v_code_out, v_scale_out,
    lr, beta1, beta2, eps, weight_decay, step, ROWS, num_warps,
):  # fmt: skip
    """p, g, codes [blocks, block], scales [blocks] -> the same after the step."""
    blocks, block = p.shape
    if not blocks:
        return
    step_size, root_factor = lr / (1 - beta1**step), (1 - beta2**step) ** -0.5
    adamw_8bit[(triton.cdiv(blocks, ROWS),)](
        p, g, m_code, m_scale, v_code, v_scale,
        p_out, m_code_out, m_scale_out, v_code_out, v_scale_out,
        blocks, block, beta1, beta2, 1 - beta1, 1 - beta2, step_size, root_factor, eps, lr * weight_decay,
        ROWS=ROWS, BLOCK=triton.next_power_of_2(block), num_warps=num_warps,
    )  # fmt: skip
