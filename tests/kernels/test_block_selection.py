"""Selected blocks are right by their scores: any order, any of equal ones, and no other choice."""

import pytest
import torch

from kernels.block_scores.reference_top_k import reference
from pipeline.verify.oracle.tolerance import Deviation, Expected, aligned, deviation
from tests.kernels.derived_bounds import kernel_of, oracle_of
from tests.kernels.test_cpp_kernels import inputs_of, problem_of

SIZES = (1, 20, 100, 32, 4)


def drawn(dtype: str) -> tuple[dict[str, torch.Tensor], dict[str, Expected]]:
    """Inputs, and what is expected of them."""
    kernel = kernel_of("block_top_k")
    problem = problem_of(kernel, dtype, SIZES)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(5))
    return inputs, oracle_of(kernel).expected(problem, inputs)


def judged(index: torch.Tensor, expected: dict[str, Expected]) -> Deviation:
    """As the harness compares."""
    return deviation(aligned({"index": index}, expected)["index"], expected["index"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_any_order_passes(dtype: str) -> None:
    """A list is a set."""
    _, expected = drawn(dtype)
    index = expected["index"].reference.to(torch.int32)
    assert judged(index, expected).passed
    assert judged(index.flip(-1), expected).passed
    assert judged(index[..., torch.randperm(index.shape[-1])], expected).passed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("slot", [0, 7])
def test_a_wrong_choice_is_refused(dtype: str, slot: int) -> None:
    """The best block that was left out, in place of any that was kept; one from no list; one twice."""
    inputs, expected = drawn(dtype)
    index = expected["index"].reference.to(torch.int32)
    scores = inputs["q"].double() @ inputs["k"].double().mT
    candidate = torch.zeros(1, 2, 7, dtype=torch.bool).scatter_(2, inputs["parents"].long(), True)
    candidate = candidate.repeat_interleave(16, 1)[:, :20].repeat_interleave(16, 2)[..., :100]
    left_out = scores.masked_fill(~candidate, -torch.inf).scatter(2, index.long(), -torch.inf)
    for query in range(SIZES[1]):
        wrong = index.clone()
        wrong[0, query, slot] = left_out[0, query].argmax()
        assert not judged(wrong, expected).passed
        wrong[0, query, slot] = scores[0, query].masked_fill(candidate[0, query], -torch.inf).argmax()
        assert not judged(wrong, expected).passed
        wrong[0, query, slot] = index[0, query, slot - 1]
        assert not judged(wrong, expected).passed


def test_either_of_nearly_equal_scores_passes() -> None:
    """Two blocks whose scores differ by less than the rounding of their sums, for the last place."""
    kernel = kernel_of("block_top_k")
    problem = problem_of(kernel, "float32", SIZES)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(5))
    scores = inputs["q"][0, 0].double() @ inputs["k"][0].double().mT
    index = reference(*inputs.values(), block=16, kept=8)[0, 0]
    last = int(index[scores[index.long()].argmin()])
    names = inputs["parents"][0, 0]
    other = next(
        key
        for key in range(int(names[0]) * 16, int(names[0]) * 16 + 16)
        if key < 100 and key not in index.tolist()
    )
    inputs["k"][0, other] = inputs["k"][0, last]
    inputs["k"][0, other, 0] = torch.nextafter(inputs["k"][0, last, 0], torch.tensor(9.0))
    expected = oracle_of(kernel).expected(problem, inputs)
    chosen = expected["index"].reference.to(torch.int32)
    both = [each for each in (last, other) if each in chosen[0, 0].tolist()]
    assert len(both) == 1
    swapped = chosen.clone()
    swapped[0, 0][swapped[0, 0] == both[0]] = last + other - both[0]
    assert judged(swapped, expected).passed
