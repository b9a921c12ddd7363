"""What the kernels of attention in Triton share: rows, scores, running maxima and sums, results.

Scores stay in registers: a running maximum and sum of each row scale what was accumulated (Dao et al. 2022,
arXiv:2205.14135). Exponentials are powers of two, with log2(e) in the scale of the scores. Weights are
rounded to the type of the values, whose product uses matrix units; sums are float32.

Blocks are powers of two. A depth that is none, such as 192, is summed in two products, over DEPTH and over
the REST columns after them, where one block would be padded to 256.
"""

import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def columns_of(base, row, width, inside, BEGIN: tl.constexpr, COUNT: tl.constexpr):
    """base[rows, width] -> [row, COUNT] from column BEGIN on; 0 beyond the width."""
    column = BEGIN + tl.arange(0, COUNT)
    mask = inside[:, None] & (column < width)[None, :]
    return tl.load(base + row[:, None] * width + column[None, :], mask=mask, other=0.0)


@triton.jit
def listed_keys(names, start, listed, keys, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """The keys of STEP blocks of a list, from its number `start` on, and whether they are there."""
    named = start + tl.arange(0, BLOCK * STEP) // BLOCK
    key = tl.load(names + named, mask=named < listed, other=0) * BLOCK + tl.arange(0, BLOCK * STEP) % BLOCK
    return key, (named < listed) & (key < keys)


@triton.jit
def score_keys(left, left_rest, k, at, there, depth, DEPTH: tl.constexpr, REST: tl.constexpr):
    """Products of rows of queries and the keys that lie at `at` in k -> scores, not scaled."""
    scores = tl.dot(left, tl.trans(columns_of(k, at, depth, there, 0, DEPTH)), input_precision="ieee")
    if REST:
        right = columns_of(k, at, depth, there, DEPTH, REST)
        scores = tl.dot(left_rest, tl.trans(right), scores, input_precision="ieee")
    return scores


@triton.jit
def add_values(scores, v, at, there, values_depth, largest, total, found, VALUES: tl.constexpr):
    """What rows have found, with more keys, whose scores are binary logarithms -> largest, total, found."""
    top = tl.maximum(largest, tl.max(scores, axis=1))
    # A row whose keys are all hidden so far has no maximum.
    base = tl.where(top == float("-inf"), 0.0, top)
    weights = tl.exp2(scores - base[:, None])
    shrink = tl.exp2(largest - base)
    total = total * shrink + tl.sum(weights, axis=1)
    values = columns_of(v, at, values_depth, there, 0, VALUES)
    found = tl.dot(weights.to(values.dtype), values, found * shrink[:, None], input_precision="ieee")
    return top, total, found


@triton.jit
def store_found(o, place, inside, found, total, values_depth, VALUES: tl.constexpr):
    """What rows have found, over the sum of their weights -> o."""
    result = found / tl.where(total == 0.0, 1.0, total)[:, None]
    column = tl.arange(0, VALUES)
    mask = inside[:, None] & (column < values_depth)[None, :]
    tl.store(o + place[:, None] * values_depth + column[None, :], result.to(o.dtype.element_ty), mask=mask)


def blocks_of(depth, values):
    """The largest power of two in a depth, and one for the columns after it."""
    largest = max(16, 1 << (depth.bit_length() - 1))
    rest = max(16, triton.next_power_of_2(depth - largest)) if depth > largest else 0
    return {"DEPTH": largest, "REST": rest, "VALUES": max(16, triton.next_power_of_2(values))}
