"""What a batch may move about in a model's inputs: random numbers, and nothing that has a structure."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pipeline.backends.devices.cpu import Cpu
from pipeline.measure.hosting.measuring_messages import HostedModel
from pipeline.measure.hosting.model_content import ModelContent

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x

def get_inputs():
    x = torch.randn({shape})
    return [{made}]

def get_init_inputs():
    return []
"""
SIDE = 300
"""A square of it has more elements than what is looked at first."""


@pytest.fixture
def content(tmp_path: Path) -> Callable[[str, tuple[int, ...]], ModelContent]:
    """Of a problem with one input."""

    def make(made: str, shape: tuple[int, ...]) -> ModelContent:
        path = tmp_path / "problem.py"
        path.write_text(PROBLEM.format(shape=", ".join(map(str, shape)), made=made))
        return ModelContent(HostedModel(problem=str(path), seed=1), Cpu())

    return make


@pytest.mark.parametrize(
    "made",
    [
        "x * 0 + 0.5",
        "(x > 0).float()",
        "x.round()",
        "x.sort(0).values",
        "x.sort(0, descending=True).values",
        "x.cumsum(0).abs().cumsum(0)",
        "x + x.T",
        "x.tril()",
        "x.triu()",
        "torch.diag(x[0])",
        "torch.linspace(0, 1, 90000).view(300, 300)",
        "(x > 0)",
    ],
)
def test_structures_stay(content, made: str) -> None:
    """Every batch has one of the tensors that the problem drew."""
    found = content(made, (SIDE, SIDE))
    assert not found.can_touch()
    found.renew(7)
    first = found.tensors()[0].clone()
    assert any(_renewed_equals(found, first, seed) for seed in range(20))


def _renewed_equals(found: ModelContent, first: torch.Tensor, seed: int) -> bool:
    found.renew(seed)
    return torch.equal(found.tensors()[0], first)


@pytest.mark.parametrize("shape", [(SIDE, SIDE), (100_000,), (3, 5, 7, 900), (1, 70_000), (70_000, 2)])
@pytest.mark.parametrize("made", ["x", "x.abs()", "x.relu() + 0.1 * x"])
def test_random_numbers_move(content, made: str, shape: tuple[int, ...]) -> None:
    """Every batch has other content."""
    found = content(made, shape)
    assert found.can_touch()
    found.renew(7)
    first = found.tensors()[0].clone()
    found.renew(8)
    assert not torch.equal(first, found.tensors()[0])


def test_only_a_corner_has_the_structure(content) -> None:
    """It is that of the whole that counts."""
    found = content("torch.cat([torch.ones(300, 300), x])", (SIDE, SIDE))
    assert found.can_touch()
