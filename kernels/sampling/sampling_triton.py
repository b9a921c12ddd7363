"""A token from the logits of a language model in Triton: top-k, then top-p, then a draw; a program for each
row.

The thresholds are found by search, without a sort (Qrita, Park et al. 2026, arXiv:2602.01518): floats are
mapped to integers of the same order, of which each pass over the row settles some bits, by the weight of
what reaches each of PIVOTS candidates. For top-k every logit weighs 1, for top-p e^x.

A row is read from L2 after the first pass. A pass has little to do for each of its values; there are two
for each log2(PIVOTS) bits that the type of the logits has, and four more. Small batches leave
multiprocessors idle.
"""

import triton
import triton.language as tl


@triton.jit
def load(logits, at, classes):
    """logits[at] -> float32, -infinity beyond the row."""
    return tl.load(logits + at, mask=at < classes, other=-float("inf")).to(tl.float32)


@triton.jit
def ordered(x):
    """Integers in the order of the floats; both zeros are one."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) + 0x80000000


@triton.jit
def search(
    logits, classes, goal, least, largest, factor,
    WEIGHTED: tl.constexpr, BITS: tl.constexpr, PIVOTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest integer that is reached by at least `goal` of weight, of what is at least `least`."""
    found = tl.full([], 0, tl.int64)
    for settled in tl.range(0, 32 // BITS):
        step = tl.full([], 1, tl.int64) << (32 - BITS * (settled + 1))
        pivots = found + tl.arange(0, PIVOTS) * step
        sums = tl.zeros([PIVOTS, BLOCK], tl.float32)
        for start in tl.range(0, classes, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = load(logits, at, classes)
            key = ordered(x)
            weight = tl.exp((x - largest) * factor) if WEIGHTED else (at < classes).to(tl.float32)
            weight = tl.where((key >= least) & (at < classes), weight, 0.0)
            sums += tl.where(key[None, :] >= pivots[:, None], weight[None, :], 0.0)
        reached = (tl.sum(sums, 1) >= goal).to(tl.int32)
        # The first one is where the search is: rounding cannot lead below it.
        found += tl.maximum(tl.sum(reached, 0) - 1, 0) * step
    return found


@triton.jit
def weight_of(logits, classes, least, largest, factor, BLOCK: tl.constexpr):
    """Sum of e^x of what is at least `least`."""
    sums = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = load(logits, at, classes)
        sums += tl.where((ordered(x) >= least) & (at < classes), tl.exp((x - largest) * factor), 0.0)
    return tl.sum(sums)


@triton.jit
def sample(
    logits, k, draw, token, probability, classes, stride, factor, p,
    BITS: tl.constexpr, PIVOTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """logits[rows, classes], k, draw [rows] -> token, probability [rows]."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    maxima = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in tl.range(0, classes, BLOCK):
        maxima = tl.maximum(maxima, load(logits, start + tl.arange(0, BLOCK), classes))
    largest = tl.max(maxima)
    count = tl.load(k + row).to(tl.float32)
    least = search(logits, classes, count, 0, largest, factor, False, BITS, PIVOTS, BLOCK)
    goal = p * weight_of(logits, classes, least, largest, factor, BLOCK)
    least = tl.maximum(
        search(logits, classes, goal, least, largest, factor, True, BITS, PIVOTS, BLOCK), least
    )
    total = weight_of(logits, classes, least, largest, factor, BLOCK)
    goal = (tl.load(draw + row).to(tl.float32) + 0.5) * (0.5**23) * total
    before = tl.full([], 0.0, tl.float32)
    first = tl.full([], 0x7FFFFFFF, tl.int32)
    last = tl.full([], 0, tl.int32)
    for start in tl.range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = load(logits, at, classes)
        stays = (ordered(x) >= least) & (at < classes)
        sums = before + tl.cumsum(tl.where(stays, tl.exp((x - largest) * factor), 0.0), 0)
        before = tl.max(sums)
        first = tl.minimum(first, tl.min(tl.where(stays & (sums >= goal), at, 0x7FFFFFFF)))
        last = tl.maximum(last, tl.max(tl.where(stays, at, 0)))
    # Rounding may leave the sum below the draw.
    chosen = tl.minimum(first, last)
    x = tl.load(logits + chosen).to(tl.float32)
    tl.store(token + row, chosen)
    tl.store(probability + row, tl.exp((x - largest) * factor) / total)


def launch(*, logits, k, draw, token, probability, temperature, p, PIVOTS, BLOCK, num_warps):
    """logits[rows, classes], k, draw [rows] -> token, probability [rows]."""
    rows, classes = logits.shape
    if rows:
        sample[(rows,)](
            logits, k, draw, token, probability, classes, logits.stride(0), 1 / temperature, p,
            BITS=PIVOTS.bit_length() - 1, PIVOTS=PIVOTS, BLOCK=BLOCK, num_warps=num_warps,
        )  # fmt: skip
