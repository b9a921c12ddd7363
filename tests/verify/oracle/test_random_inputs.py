"""Inputs are fresh, repeatable from their seed, and of the kind that they are called."""

import msgspec
import pytest
import torch

from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.verify.oracle.random_inputs import DISTRIBUTIONS, draw_seeds, make_inputs

PROBLEM = Problem(
    kernel="any",
    dimensions={"rows": 64, "cols": 100},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32"),
        "weight": Tensor(role="input", shape=("cols",), dtype="bfloat16"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float32"),
    },
    scalars={},
    attributes={},
    element="float32",
)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("rows", [64, 1, 0])
def test_every_distribution(distribution: str, rows: int) -> None:
    """Declared shape and dtype, equal for equal seeds, other for others; inputs only."""
    problem = PROBLEM.with_dimensions({"rows": rows})
    one, same, other = (make_inputs(problem, distribution, seed) for seed in (1, 1, 2))
    assert {name: (tuple(t.shape), t.dtype) for name, t in one.items()} == {
        "x": ((rows, 100), torch.float32),
        "weight": ((100,), torch.bfloat16),
    }
    for name in one:
        assert torch.equal(one[name].nan_to_num(), same[name].nan_to_num())
        assert one[name].numel() == 0 or not torch.equal(one[name].nan_to_num(), other[name].nan_to_num())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_sums_of_squares_have_no_sign(distribution: str) -> None:
    """What is declared as `nonnegative` is; the other inputs stay as they were."""
    squares = msgspec.structs.replace(PROBLEM.tensors["x"], nonnegative=True)
    problem = msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"x": squares})
    before, after = (make_inputs(each, distribution, 5) for each in (PROBLEM, problem))
    assert torch.equal(after["x"].nan_to_num(), before["x"].abs().nan_to_num())
    assert torch.equal(after["weight"].nan_to_num(), before["weight"].nan_to_num())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_rows_are_no_longer_than_declared(distribution: str) -> None:
    """What is longer than `row_norm` is scaled down; shorter rows and special values stay."""
    limited = msgspec.structs.replace(PROBLEM.tensors["x"], row_norm=2.0)
    problem = msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"x": limited})
    before, after = (make_inputs(each, distribution, 5)["x"] for each in (PROBLEM, problem))
    finite = before.isfinite()
    assert torch.equal(after.isfinite(), finite)
    assert torch.equal(after[~finite].nan_to_num(), before[~finite].nan_to_num())
    norms = torch.where(finite, before, 0.0).norm(dim=-1, keepdim=True)
    expected = before * (2.0 / norms).clamp(max=1.0)
    torch.testing.assert_close(after[finite], expected[finite])
    short = norms[:, 0] <= 2.0
    assert torch.equal(after[short].nan_to_num(), before[short].nan_to_num())


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("rows", [1, 2, 64])
def test_cumulative_lengths_end_their_range(distribution: str, rows: int) -> None:
    """They ascend, and the last one is the end of the range."""
    ends = Tensor(role="input", shape=("rows",), dtype="int32", at_least=3, below="cols", cumulative=True)
    problem = msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"ends": ends})
    drawn = make_inputs(problem.with_dimensions({"rows": rows}), distribution, 5)["ends"]
    assert drawn.dtype == torch.int32
    assert (drawn.diff() >= 0).all()
    assert drawn[-1] == 99
    assert drawn[0] >= 3
    assert rows < 64 or len(set(drawn.tolist())) > 10


@pytest.mark.parametrize("rows", [1, 64])
def test_distinct_numbers(rows: int) -> None:
    """None twice in a list, in no order, from all of their range; what it lacks is repeated."""
    lists = Tensor(
        role="input", shape=("rows", "cols"), dtype="int32", at_least=3, below="end", distinct=True
    )
    problem = msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"lists": lists})
    sizes = {"rows": rows, "cols": 7, "end": 13}
    drawn = make_inputs(problem.with_dimensions(sizes), "normal", 5)["lists"]
    assert drawn.dtype == torch.int32
    assert all(len(set(each)) == 7 for each in drawn.tolist())
    assert rows == 1 or set(drawn.flatten().tolist()) == set(range(3, 13))
    assert not torch.equal(drawn, drawn.sort(-1).values)
    short = make_inputs(problem.with_dimensions(sizes | {"end": 8}), "normal", 5)["lists"]
    assert all(set(each) == set(range(3, 8)) for each in short.tolist())


def test_what_the_distributions_are_for() -> None:
    """Large ones overflow exp, small ones vanish beside 1, one-signed rows have one sign, ties repeat."""
    x = {name: make_inputs(PROBLEM, name, 3)["x"] for name in DISTRIBUTIONS}
    assert x["large"].exp().isinf().any()
    assert x["small"].abs().max() < 0.1 < x["normal"].abs().max()
    signs = x["one_signed"].sign()
    assert (signs == signs[:, :1]).all() and (signs != 0).all() and signs.unique().numel() == 2
    assert x["ties"].unique().numel() == 5 and (x["ties"][0] == x["ties"][0, 0]).all()
    assert x["special"].isnan().any()
    assert (x["special"] == float("inf")).any()
    assert (x["special"] == float("-inf")).any()
    clean = x["special"].isfinite().all(dim=1)
    assert clean.sum() >= 59
    masked = x["special"] == float("-inf")
    padded_on_the_left = masked[:, 0] & masked[:, masked.shape[1] // 2] & ~masked[:, -1]
    assert padded_on_the_left.sum() == 1


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (Tensor(role="input", shape=("rows", "cols"), dtype="int64"), {0, 1}),
        (Tensor(role="input", shape=("rows", "cols"), dtype="int64", below="groups"), {0, 1, 2}),
        (Tensor(role="input", shape=("rows", "cols"), dtype="int8", at_least=-2, below=2), {-2, -1, 0, 1}),
    ],
)
def test_integers_are_in_their_range(tensor: Tensor, expected: set[int]) -> None:
    """Truth values, indices of a dimension, or between two numbers; every value occurs."""
    problem = msgspec.structs.replace(
        PROBLEM, dimensions={**PROBLEM.dimensions, "groups": 3}, tensors={"x": tensor}
    )
    assert set(make_inputs(problem, "normal", 1)["x"].unique().tolist()) == expected


def test_constants_are_not_quite_constant() -> None:
    """A sample of a few elements sees one value, zero in some seeds; somewhere there is another one."""
    problem = PROBLEM.with_dimensions({"rows": 300})
    found = [make_inputs(problem, "constant", seed)["x"].flatten() for seed in range(12)]
    common = [values.median() for values in found]
    assert all(0 < (values != value).sum() < 20 for values, value in zip(found, common, strict=True))
    assert {bool(value == 0) for value in common} == {True, False}


def test_seeds_are_drawn() -> None:
    """Nobody can know them before; JSON readers keep 53 bits."""
    seeds = draw_seeds(100)
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 2**53 for seed in seeds)
