"""Filters for tasks that nearly no work would solve: each one finds its kind and nothing else."""

import pytest
import torch

from pipeline.verify.oracle.degeneracy import degeneracies


def draws(make, count=3):
    """One output for each of several seeds."""
    return [[make(torch.Generator().manual_seed(seed))] for seed in range(count)]


def normal(generator):
    """A healthy output."""
    return torch.randn(16, 8, generator=generator)


def test_a_healthy_task_passes():
    """Different inputs, different weights, values of ordinary size."""
    assert degeneracies(draws(normal), draws(normal)) == ()


@pytest.mark.parametrize(
    ("make", "lines"),
    [
        (lambda generator: 1e-3 * normal(generator), ("output range", "output spread", "insensitive")),
        (lambda generator: 5.0 + 1e-3 * normal(generator), ("output spread", "insensitive")),
        (lambda generator: torch.arange(32.0).view(4, 8), ("insensitive",)),
        (lambda generator: normal(generator)[:, :1].expand(16, 8), ("output spread: output 0 is the same",)),
        (lambda generator: normal(generator)[:1].expand(16, 8), ("output spread: output 0 is the same",)),
        (lambda generator: torch.full((4, 4), 3, dtype=torch.int64), ("output spread", "insensitive")),
    ],
)
def test_each_filter(make, lines):
    """Small range, small spread, constant, no change along an axis; integers as well."""
    found = degeneracies(draws(make))
    assert len(found) == len(lines)
    assert all(text.startswith(start) for text, start in zip(found, lines, strict=True))


def test_weights_without_effect():
    """Equal inputs, models constructed under other seeds, equal outputs."""
    constant = [[torch.arange(8.0)]] * 2
    assert degeneracies(draws(normal), constant) == (
        "insensitive: other initial weights change no output by more than 0",
    )


def test_nothing_to_compare():
    """A single draw, no weights, no elements: no line that was not looked at."""
    assert degeneracies(draws(normal, count=1)) == ()
    assert degeneracies([[torch.empty(0, 3)]]) == ()
    assert degeneracies([]) == ()


def test_special_values_are_values():
    """NaN in one place only is a difference."""
    first = torch.zeros(8)
    second = first.clone()
    second[3] = float("nan")
    assert not [line for line in degeneracies([[first], [second]]) if line.startswith("insensitive")]


def test_outputs_of_changing_shape_differ():
    """The shape itself follows the inputs."""
    assert degeneracies([[torch.ones(3) * 2], [torch.ones(4) * 2]]) == (
        "output spread: the standard deviation over all elements is 0, their mean passes",
    )
