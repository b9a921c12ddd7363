"""Triton rewrites: what is written, and kernels that they leave alone."""

import ast

import pytest

from pipeline.search.rewriting import triton_fusion, triton_persistent, triton_split, triton_width
from tests.search.rewriting.sources import H200, MATMUL, TWO_KERNELS, found

ROWS = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for step in range(0, rows, 2):
        total += tl.load(x + step * BLOCK + tl.arange(0, BLOCK))
    tl.store(y + row * BLOCK + tl.arange(0, BLOCK), total)


def launch(*, x, y, BLOCK, num_warps):
    kernel[(x.shape[0],)](x, y, x.shape[0], BLOCK=BLOCK, num_warps=num_warps)
"""


def line_with(text: str, piece: str) -> str:
    """The first line that has it."""
    return next(line.strip() for line in text.splitlines() if piece in line)


def test_persistent_programs() -> None:
    """Once to four times as many programs as multiprocessors, each with a loop over tiles."""
    rewrites = found(triton_persistent.TRANSFORMATION, MATMUL, **H200)
    assert [each.name for each in rewrites] == ["persistent=132", "persistent=264", "persistent=528"]
    text = rewrites[0].text
    loop = "for persistent_tile in tl.range(tl.program_id(0), persistent_tiles, tl.num_programs(0)):"
    assert line_with(text, "in tl.range(tl.program_id") == loop
    assert "_tile(persistent_program, M, N, BLOCK_M, BLOCK_N, GROUP_M)" in text
    assert "matmul[min(grid[0], 132),](" in text
    assert "persistent_tiles=grid[0])" in text


def test_unknown_devices_have_no_persistent_programs() -> None:
    """How many programs a device holds is not guessed."""
    assert found(triton_persistent.TRANSFORMATION, MATMUL) == []


@pytest.mark.parametrize(
    ("old", "new"), [
        ("    row = tl.program_id(0)\n", "    row = tl.program_id(0)\n    if row > 3:\n        return\n"),
        ("    row = tl.program_id(0)\n", "    row = tl.program_id(0)\n    x += row\n"),
        ("tl.program_id(0)", "tl.program_id(1)"),
        ("(x.shape[0],)", "(x.shape[0], 2)"),
        ("(x.shape[0],)", "lambda meta: (meta['BLOCK'],)"),
    ]
)  # fmt: skip
def test_kernels_that_run_once(old: str, new: str) -> None:
    """A way out, changed arguments, another grid: refused."""
    assert found(triton_persistent.TRANSFORMATION, ROWS, **H200)
    assert found(triton_persistent.TRANSFORMATION, ROWS.replace(old, new), **H200) == []


def test_split_sums() -> None:
    """A first kernel for the parts, with pointers moved on; a second one for their sum and the epilogue."""
    rewrites = found(triton_split.TRANSFORMATION, MATMUL)
    assert [each.name for each in rewrites] == ["split-K=2", "split-K=4", "split-K=8"]
    text = rewrites[1].text
    functions = {
        each.name: ast.unparse(each) for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)
    }
    first, second = functions["matmul_partial"], functions["matmul"]
    assert "a_place += split_part * split_steps * BLOCK_K" in first
    assert "b_place += split_part * split_steps * b_step" in first
    assert "tl.minimum(K, split_start + split_steps * BLOCK_K), BLOCK_K)" in first
    assert "_gelu" not in first and "_gelu" in second
    assert "tl.dot" not in second and "sums += tl.load(split_sums + " in second
    launch = functions["launch"]
    assert "torch.empty((4, grid[0], BLOCK_M, BLOCK_N), dtype=torch.float32, device=a.device)" in launch
    assert "matmul_partial[grid[0], 4](" in launch
    assert text.index("import torch") < text.index("import triton")


@pytest.mark.parametrize(
    ("old", "new"), [
        ("total += tl.load", "total = total * 2 + tl.load"),  # no sum
        ("total += tl.load", "total += total + tl.load"),
        ("tl.zeros([BLOCK], tl.float32)", "tl.full([BLOCK], 1.0, tl.float32)"),  # does not begin at zero
        ("tl.zeros([BLOCK], tl.float32)", "tl.zeros([BLOCK], tl.float16)"),
        ("range(0, rows, 2)", "range(1, rows, 2)"),  # terms are missing
        ("    tl.store(y", "    total += step\n    tl.store(y"),  # the loop's variable is used after it
        ("        total += ", "        tl.store(y + step, 0.0)\n        total += "),  # has effects
        ("    total = tl", "    tl.store(y, 0.0)\n    total = tl"),  # would be done twice
        ("BLOCK=BLOCK", "**{'BLOCK': BLOCK}"),  # the host does not name the size
    ]
)  # fmt: skip
def test_sums_that_stay_whole(old: str, new: str) -> None:
    """Refused."""
    assert found(triton_split.TRANSFORMATION, ROWS)
    assert found(triton_split.TRANSFORMATION, ROWS.replace(old, new)) == []


def test_elements_of_a_thread() -> None:
    """Half the warps, or twice the step of a loop; the grid and all else follow."""
    rewrites = found(triton_width.TRANSFORMATION, MATMUL)
    names = [each.name for each in rewrites]
    assert names == ["vector width: BLOCK_K times 2", "vector width: half the warps"]
    host = rewrites[0].text[rewrites[0].text.index("def launch") :]
    assert host.index("BLOCK_K = 2 * BLOCK_K") < host.index("K % BLOCK_K == 0")


def test_warps_that_the_host_sets() -> None:
    """A number that is no tunable of the host's stays."""
    text = ROWS.replace("    kernel[", "    num_warps = 4\n    kernel[")
    assert found(triton_width.TRANSFORMATION, text) == []


def test_fused_kernels() -> None:
    """One launch, with the second one's arguments; the work stands where the result was stored."""
    (rewrite,) = found(triton_fusion.TRANSFORMATION, TWO_KERNELS)
    host = rewrite.text[rewrite.text.index("def launch") :]
    assert "bias_gelu[" not in host
    assert "fused_bias=bias" in host and host.index("count = ") < host.index("product[")
    kernel = rewrite.text[rewrite.text.index("def product") : rewrite.text.index("def bias_gelu")]
    assert kernel.count("tl.store(") == 1
    assert "tl.load(fused_bias + fused_place % fused_N, mask=inside, other=0.0)" in kernel
    assert "fused_value = sums.to(c.dtype.element_ty).to(c.dtype.element_ty)" in kernel


@pytest.mark.parametrize(
    ("old", "new"), [
        ("(c, bias, c, count", "(a, bias, c, count"),  # works on something else
        ("count = c.numel()", "count = N"),  # not on all elements
        ("(triton.cdiv(count, 1024),)", "(1,)"),
        ("(c, bias, c, count", "(c, bias, a, count"),  # writes what others still read
        ("values + at, mask", "values + at % 8, mask"),  # another element
        ("value = value + tl.load", "value = value / tl.sum(value, 0) + tl.load"),  # of all elements
        ("    count = c.numel()", "    count = c.numel()\n    c += 1"),  # something happens between them
        ("bias + at % N, mask=inside, other=0.0", "bias + at % N, mask=at < 9, other=0.0"),
        ("sums = tl.zeros([BLOCK_M, BLOCK_N]", "sums = tl.load(c) + tl.zeros([BLOCK_M, BLOCK_N]"),
    ]
)  # fmt: skip
def test_kernels_that_stay_two(old: str, new: str) -> None:
    """Refused."""
    assert old in TWO_KERNELS
    assert found(triton_fusion.TRANSFORMATION, TWO_KERNELS.replace(old, new)) == []


@pytest.mark.parametrize("module", [triton_fusion, triton_persistent, triton_split, triton_width])
def test_what_is_no_python(module: object) -> None:
    """A language model's answer may be anything."""
    assert found(module.TRANSFORMATION, "def (:\n", **H200) == []
