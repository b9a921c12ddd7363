"""Tensors of a batch: equal for equal seeds, fresh for others, where torch would put them."""

import msgspec
import pytest
import torch

from pipeline.backends.devices.cpu import Cpu
from pipeline.measure.hosting.input_content import POOL, Content
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from tests.measure.problems import PROBLEM

CPU = Cpu()


def content(problem: Problem, seed: int) -> Content:
    """Made in one go."""
    made = Content(problem, CPU)
    made.renew(seed)
    return made


def test_equal_seeds_equal_content() -> None:
    """Two processes that are told the same seed compute on the same numbers."""
    one, other = content(PROBLEM, 5), content(PROBLEM, 5)
    assert torch.equal(one.tensors["x"], other.tensors["x"])


def test_fresh_content() -> None:
    """Another seed, other numbers, in the same process; no element stays."""
    made = content(PROBLEM, 5)
    before = made.tensors["x"].clone()
    made.renew(6)
    assert (made.tensors["x"] == before).float().mean() < 0.01


def test_shapes_and_types() -> None:
    """As the problem declares them, contiguous, inputs in order, outputs apart from them."""
    problem = msgspec.structs.replace(
        PROBLEM,
        tensors={
            name: msgspec.structs.replace(tensor, dtype="bfloat16")
            for name, tensor in PROBLEM.tensors.items()
        },
    )
    made = content(problem, 1)
    assert [tensor.shape for tensor in made.inputs()] == [(64, 256)]
    for tensor in made.tensors.values():
        assert tensor.dtype == torch.bfloat16
        assert tensor.is_contiguous()
        assert tensor.data_ptr() % 64 == 0
    assert abs(made.tensors["x"].float().mean()) < 0.1
    assert 0.9 < made.tensors["x"].float().std() < 1.1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_are_no_longer_than_declared(dtype: str) -> None:
    """Rows of random numbers are much longer than 1."""
    limited = msgspec.structs.replace(PROBLEM.tensors["x"], row_norm=1.0, dtype=dtype)
    made = content(msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"x": limited}), 1)
    norms = made.tensors["x"].float().norm(dim=-1)
    torch.testing.assert_close(norms, torch.ones(64), rtol=0.01, atol=0.0)


def test_cumulative_lengths_end_their_range() -> None:
    """They ascend, the last one is the end of the range, and the next batch has others."""
    ends = Tensor(role="input", shape=("cols",), dtype="int32", below="rows", cumulative=True)
    made = content(msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"ends": ends}), 1)
    before = made.tensors["ends"].clone()
    assert (before.diff() >= 0).all()
    assert before[-1] == 63
    made.renew(2)
    assert not torch.equal(made.tensors["ends"], before)


def test_distinct_numbers() -> None:
    """None twice in a list, in no order, and the next batch has others."""
    lists = Tensor(role="input", shape=("rows", "9"), dtype="int32", below=40, distinct=True)
    made = content(msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"lists": lists}), 1)
    before = made.tensors["lists"].clone()
    assert all(len(set(each)) == 9 for each in before.tolist())
    assert set(before.flatten().tolist()) == set(range(40))
    assert not torch.equal(before, before.sort(-1).values)
    made.renew(2)
    assert not torch.equal(made.tensors["lists"], before)


def test_tensors_move() -> None:
    """Where a tensor lies is drawn for each batch, so that luck with addresses averages out."""
    made = content(PROBLEM, 0)
    places = set()
    for seed in range(10):
        made.renew(seed)
        places.add(made.tensors["x"].data_ptr() % 4096)
    assert len(places) > 3


@pytest.mark.parametrize("cols", [POOL - 1, POOL, 2 * POOL + 3])
def test_larger_than_the_pool(cols: int) -> None:
    """A large tensor is filled to its last element, in stretches that differ."""
    made = Content(PROBLEM.with_dimensions({"rows": 1, "cols": cols}), CPU)
    made.renew(3)
    x = made.tensors["x"].flatten()
    assert x[-1] != 0
    assert not torch.equal(x[: cols // 3], x[cols - cols // 3 :])


def test_empty() -> None:
    """A tensor without elements is legal."""
    made = content(PROBLEM.with_dimensions({"rows": 0}), 1)
    assert made.tensors["x"].shape == (0, 256)


def test_unknown_type() -> None:
    """A wrong dtype in a kernel's yaml is named with its tensor."""
    tensors = {"x": msgspec.structs.replace(PROBLEM.tensors["x"], dtype="float3")}
    with pytest.raises((TypeError, AttributeError), match="float3"):
        Content(msgspec.structs.replace(PROBLEM, tensors=tensors), CPU)


@pytest.mark.parametrize(
    ("dtype", "least", "below"),
    [
        ("int64", 0, 7), ("int64", 0, 1), ("int32", 5, 300), ("int8", -128, 128), ("int8", -8, 8),
        ("int8", -100, 120), ("uint8", 0, 256), ("uint8", 0, 16), ("bool", 0, 2),
    ],
)  # fmt: skip
def test_integers_fill_their_range(dtype: str, least: int, below: int) -> None:
    """Indices name all that there is, and nothing else."""
    limited = msgspec.structs.replace(PROBLEM.tensors["x"], dtype=dtype, at_least=least, below=below)
    made = content(msgspec.structs.replace(PROBLEM, tensors=PROBLEM.tensors | {"x": limited}), 1)
    found = made.tensors["x"].long()
    assert (int(found.min()), int(found.max())) == (least, below - 1)
    assert len(found.unique()) == below - least
