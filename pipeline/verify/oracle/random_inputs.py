"""Inputs that a candidate cannot know: several distributions, from seeds drawn at run time.

In: a problem, a distribution, a seed. Out: one tensor per input, contiguous, in its declared dtype.
Each distribution is one function and one line in `DISTRIBUTIONS`.
"""

import os
from collections.abc import Callable

import torch

from pipeline.records.configuration.stage_settings import Distribution
from pipeline.records.planning.problem import Problem
from pipeline.records.record import digest

Values = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]
"""Shape and generator -> float32 values of that shape."""


def draw_seeds(count: int) -> tuple[int, ...]:
    """Seeds from the operating system: 48 bits each, exact in every JSON reader."""
    return tuple(int.from_bytes(os.urandom(6), "little") for _ in range(count))


def make_inputs(problem: Problem, distribution: Distribution, seed: int) -> dict[str, torch.Tensor]:
    """Inputs by name; equal arguments give equal bits. `integers` are from `pipeline.verify.oracle.exact`."""
    return {name: _make(problem, name, distribution, seed) for name in problem.names("input")}


def with_row_norm(values: torch.Tensor, norm: float) -> torch.Tensor:
    """Rows of a larger norm scaled down to it; what is not finite stays and does not count."""
    finite = torch.where(values.isfinite(), values, 0.0)
    lengths: torch.Tensor = torch.linalg.vector_norm(finite, dim=-1, keepdim=True)
    return values * (norm / lengths.clamp_min(norm))


def _make(problem: Problem, name: str, distribution: Distribution, seed: int) -> torch.Tensor:
    shape = problem.shape(name)
    dtype: torch.dtype = getattr(torch, problem.tensors[name].dtype)
    own_seed = int(digest([seed, distribution, name, shape])[:15], 16)
    generator = torch.Generator().manual_seed(own_seed)
    if dtype.is_floating_point:
        values = DISTRIBUTIONS[distribution](shape, generator)
        norm = problem.tensors[name].row_norm
        values = (values if norm is None else with_row_norm(values, norm)).to(dtype)
        return values.abs() if problem.tensors[name].nonnegative else values
    end = problem.integer_range(name)[1]
    integers = torch.randint(*problem.drawn_range(name), shape, generator=generator).to(dtype)
    if problem.tensors[name].distinct:
        integers = (integers.sort(-1).values + torch.arange(shape[-1], dtype=dtype)).clamp_(max=end - 1)
        integers = integers.gather(-1, torch.rand(shape, generator=generator).argsort(-1))
    if problem.tensors[name].cumulative:
        integers = integers.sort(-1).values
        integers[..., -1:] = end - 1
    return integers


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Standard normal."""
    return torch.randn(shape, generator=generator)


def _large(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Each row on its own scale from 8 to 1024: exponentials overflow unless the maximum is taken out."""
    return _normal(shape, generator) * _row_scale(shape, generator, 3.0, 10.0)


def _small(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Each row from 2^-14 to 2^-6: squares are near the usual epsilons."""
    return _normal(shape, generator) * _row_scale(shape, generator, -14.0, -6.0)


def _one_signed(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Each row of one sign, far from zero, scale 1 to 256: wrong start values and biased sums show."""
    values = torch.rand(shape, generator=generator) + 0.5
    sign = torch.randint(0, 2, (*shape[:-1], 1), generator=generator) * 2.0 - 1.0
    return values * sign * _row_scale(shape, generator, 0.0, 8.0)


def _ties(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Five values only, so most are equal; every fourth row is constant."""
    values = torch.randint(-2, 3, shape, generator=generator).to(torch.float32)
    if len(shape) > 1 and values.numel():
        values[::4] = values[::4, ..., :1]
    return values


def _constant(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """One value everywhere, often zero, but for a few elements: who looks at some of them sees a constant."""
    value = torch.randint(-1, 3, (), generator=generator).clamp(min=0) * torch.rand((), generator=generator)
    values = torch.full(shape, float(value))
    count = values.numel() // _ONE_IN + 1 if values.numel() else 0
    places = torch.randint(0, max(values.numel(), 1), (count,), generator=generator)
    values.view(-1)[places] = torch.randn(count, generator=generator)
    return values


def _special(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Normal, but a few rows hold NaN or an infinity, one ends and one begins with minus infinity (masks)."""
    values = _normal(shape, generator)
    if not values.numel():
        return values
    rows = values.view(-1, shape[-1]) if len(shape) > 1 else values.view(1, -1)
    chosen = torch.randperm(rows.shape[0], generator=generator)
    for row, value in zip(chosen.tolist(), (float("nan"), float("-inf"), float("inf")), strict=False):
        column = int(torch.randint(0, rows.shape[1], (), generator=generator))
        rows[row, column] = value
    if rows.shape[0] > 3 and rows.shape[1] > 1:
        first = int(torch.randint(1, rows.shape[1], (), generator=generator))
        rows[chosen[3], first:] = float("-inf")
    if rows.shape[0] > 4 and rows.shape[1] > 1:
        # A short sequence, padded on its left: whole blocks of a running maximum see nothing else.
        left = int(torch.randint(1, max(rows.shape[1] // 16, 1) + 1, (), generator=generator))
        rows[chosen[4], :-left] = float("-inf")
    return values


def _row_scale(shape: tuple[int, ...], generator: torch.Generator, low: float, high: float) -> torch.Tensor:
    """2^U(low, high) per row; per element for vectors."""
    rows = (*shape[:-1], 1) if len(shape) > 1 else shape
    return torch.exp2(torch.rand(rows, generator=generator) * (high - low) + low)


_ONE_IN = 4096  # elements of `constant` is another one

DISTRIBUTIONS: dict[Distribution, Values] = {
    "normal": _normal,
    "large": _large,
    "small": _small,
    "one_signed": _one_signed,
    "ties": _ties,
    "special": _special,
    "constant": _constant,
}
