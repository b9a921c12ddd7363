"""Compressed bfloat16 weights come back bit for bit, and take as much less memory as is said."""

import pytest
import torch

from kernels.dfloat11.compress import code_lengths, compress
from kernels.dfloat11.reference import decompress
from tests.kernels.derived_bounds import kernel_of
from tests.kernels.test_cpp_kernels import launch_of, problem_of

FORMAT = {"steps": 256, "streams": 32}
NAMES = ("plain", "words", "starts", "offsets", "table")
VARIANTS = [
    {},
    {"LANES": 16, "UNROLL": 1, "TABLE": False},
    {"LANES": 8, "UNROLL": 4, "SYMBOLS": 1},
    {"LANES": 1, "UNROLL": 1},
]
SIZES = [(1, 1), (300, 70), (256, 32), (515, 129)]


def normal(rows: int, cols: int) -> torch.Tensor:
    """Weights of a layer, with a few that are far out, zero or not finite."""
    weight = torch.randn(rows, cols, generator=torch.Generator().manual_seed(5)) * 0.02
    special = torch.tensor([0.0, -0.0, 3.4e38, 1e-40, float("inf"), float("nan")])
    weight.view(-1)[: min(weight.numel(), 6)] = special[: weight.numel()]
    return weight.to(torch.bfloat16)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_reference_restores_what_was_compressed(sizes: tuple[int, int]) -> None:
    """Every bit, also of zeros, infinities and NaN."""
    weight = normal(*sizes)
    assert torch.equal(decompress(*compress(weight, **FORMAT), **FORMAT), weight.view(torch.int16))


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "sizes"), list(zip(VARIANTS, SIZES, strict=True)), ids=str)
def test_cpp_restores_what_was_compressed(tmp_path, changes: dict, sizes: tuple[int, int]) -> None:
    """Likewise, at the edges of blocks and of groups of columns."""
    kernel = kernel_of("decompress_bfloat16")
    (room,) = problem_of(kernel, "bfloat16", sizes).shape("words")
    weight = normal(*sizes)
    stored = dict(zip(NAMES, compress(weight, **FORMAT), strict=True))
    stored["words"] = torch.nn.functional.pad(stored["words"], (0, room - len(stored["words"])))
    restored = torch.full(sizes, 7, dtype=torch.int16)
    launch_of(kernel, "bfloat16", changes, tmp_path, sizes)({**stored, "w": restored})
    assert torch.equal(restored, weight.view(torch.int16))


def test_normal_weights_take_67_percent() -> None:
    """All that is stored, but for the room behind the last group, which a large matrix has once as well."""
    weight = torch.randn(2048, 2048, generator=torch.Generator().manual_seed(5)).mul(0.02).to(torch.bfloat16)
    stored = compress(weight, **FORMAT)
    behind = FORMAT["steps"] * FORMAT["streams"] + 4
    size = sum(each.numel() * each.element_size() for each in stored) - behind
    assert 0.66 < size / (2 * weight.numel()) < 0.68


def test_code_is_complete_and_within_its_limit() -> None:
    """Counts that fall by half would have a code as long as there are symbols."""
    lengths = code_lengths([1 << power for power in range(30)])
    assert max(lengths) == 8
    assert sum(2.0**-length for length in lengths) == 1.0
    assert code_lengths([0, 7, 0]) == [0, 1, 0]
