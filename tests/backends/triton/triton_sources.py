"""Triton modules that tests compile: right ones that are unusual, and wrong ones."""

HEAD = """\
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

"""

TWO_KERNELS = (
    HEAD
    + """
@triton.jit
def halve(y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 0.5 * tl.load(y + at, mask=at < n), mask=at < n)


def launch(*, x, y):
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    halve[(triton.cdiv(x.numel(), 1024),)](y, x.numel(), BLOCK=1024, num_warps=8)
    double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
"""
)

GRID_FUNCTION = (
    HEAD
    + """
def launch(*, x, y):
    double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]), 2)](x, y, x.numel(), BLOCK=512)
"""
)

AUTOTUNED = """
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})], key=["n"])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


def launch(*, x, y):
    double[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
"""

UNKNOWN_NAME = """
import triton
import triton.language as tl


@triton.jit
def wrong(x, y, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), undefined_thing)


def launch(*, x, y):
    wrong[(1,)](x, y, BLOCK=256)
"""

UNKNOWN_NAME_IN_A_FUNCTION = (
    UNKNOWN_NAME.replace("wrong(x, y, BLOCK", "helper(y, BLOCK").partition("def launch")[0]
    + """
@triton.jit
def caller(x, y, BLOCK: tl.constexpr):
    helper(y, BLOCK)


def launch(*, x, y):
    caller[(1,)](x, y, BLOCK=256)
"""
)

REFUSED_BY_ASSEMBLER = """
import triton
import triton.language as tl


@triton.jit
def wrong(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise(
        "no.such.instruction $0, $1;", "=r,r", [tl.load(x + at)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y + at, value)


def launch(*, x, y):
    wrong[(1,)](x, y, BLOCK=256)
"""

ONE_PRODUCT = """
import triton
import triton.language as tl


@triton.jit
def product(x, y, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tile = tl.load(x + at[:, None] * SIZE + at[None, :]).to(tl.float16)
    tl.store(y + at[:, None] * SIZE + at[None, :], tl.dot(tile, tl.trans(tile)))


def launch(*, x, y):
    product[(1,)](x, y, SIZE=64)
"""

LAUNCHES_NOTHING = """
def launch(*, x, y):
    y.copy_(x)
"""

RAISES_AT_IMPORT = """
import a_package_that_is_not_there
"""

NOT_PYTHON = """
def launch(*, x, y
"""

EXITS = """
def launch(*, x, y):
    raise SystemExit(3)
"""
