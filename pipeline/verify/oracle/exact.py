"""A second oracle for linear kernels: small integers, on which every order of summation gives the same bits.

In: a problem and how many terms are accumulated. Out: inputs, and from the reference and the magnitude on
them an `Expected` that allows no error: integers whose absolute sums stay below 2^p are exact in a type of
p significant bits, and so is every partial sum.
"""

import math

import torch

from pipeline.records.planning.problem import Problem
from pipeline.records.record import digest
from pipeline.verify.oracle.tolerance import Expected, tiny, unit_roundoff

_LARGEST = 64  # larger integers would find nothing more


def integer_inputs(problem: Problem, *, terms: float, seed: int) -> dict[str, torch.Tensor]:
    """Small integers of both signs in the inputs' dtypes; mostly zeros where many terms meet a small type.

    `terms`: products (of one element of each floating input, or sums of such) that enter one output.
    """
    outputs = [getattr(torch, problem.tensors[name].dtype) for name in problem.names("output")]
    room = min((significand(dtype) for dtype in outputs if dtype.is_floating_point), default=24)
    floats = [name for name in problem.names("input") if _dtype(problem, name).is_floating_point]
    factors = max(min(len(floats), 2), 1)
    largest = int((2.0**room / max(terms, 1.0)) ** (1.0 / factors))
    # Even with ones there would be too many: then so many of them are zero that half of the room is used.
    density = min(1.0, 2.0 ** (room - 1) / max(terms, 1.0)) ** (1.0 / factors)
    inputs: dict[str, torch.Tensor] = {}
    for name in problem.names("input"):
        limit = max(min(largest, _LARGEST, 2 ** (significand(_dtype(problem, name)) - 1)), 1)
        shape = problem.shape(name)
        own_seed = int(digest([seed, "integers", name, shape])[:15], 16)
        generator = torch.Generator().manual_seed(own_seed)
        values = torch.randint(-limit, limit + 1, shape, generator=generator)
        if limit == 1:
            values *= torch.rand(shape, generator=generator) < density
        if problem.tensors[name].nonnegative:
            values = values.abs()
        inputs[name] = values.to(_dtype(problem, name))
    return inputs


def exact_expectation(
    reference: torch.Tensor, magnitude: torch.Tensor, *, output: str, accumulate: str
) -> Expected | None:
    """What must come out bit for bit; None where not every partial sum is exact.

    `reference` and `magnitude` (the sum of absolute terms): float64, same shape. Where the output type does
    not hold the sum, the nearest number that it does is right.
    """
    dtype = getattr(torch, output)
    room = 2.0 ** significand(getattr(torch, accumulate))
    if bool((magnitude.abs() >= room).any()) or not bool((reference == reference.round()).all()):
        return None
    nearest = reference.to(dtype).to(torch.float64)
    bound = torch.full_like(reference, tiny(dtype) if dtype.is_floating_point else 0.5)
    if dtype.is_floating_point:
        # Ties may be broken either way by hardware that rounds otherwise; numbers that fit may not differ.
        inexact = nearest != reference
        bound = torch.where(inexact, reference.abs() * unit_roundoff(dtype) * (1 + 2.0**-30), bound)
    finite = float(torch.finfo(dtype).max) if dtype.is_floating_point else math.inf
    plain = bool((reference.abs() + bound < finite).all())
    return Expected(dtype=output, reference=reference.contiguous(), bound=bound.contiguous(), plain=plain)


def significand(dtype: torch.dtype) -> int:
    """Significant bits: 24 of float32, 11 of float16, 8 of bfloat16; value bits of integers."""
    if dtype.is_floating_point:
        return 1 - round(math.log2(torch.finfo(dtype).eps))
    return 1 if dtype == torch.bool else torch.iinfo(dtype).bits - 1


def _dtype(problem: Problem, name: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, problem.tensors[name].dtype)
    return found
