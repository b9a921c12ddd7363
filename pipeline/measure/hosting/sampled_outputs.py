"""Does a model return what it returned, and what `Model` returns? In: results. Out: elements, differences.

Elements at places that follow from a seed are taken in the process of the model and compared in the one that
coordinates: expected values never enter the process of a candidate.
"""

import math
import random
from collections.abc import Sequence
from typing import Any

import torch

from pipeline.measure.hosting.measuring_messages import Sampled, SampledOutput
from pipeline.measure.hosting.model_hosting import tensors_of

ELEMENTS = 4096
"""Of each output; what leaves out a thousandth of them is seen with a probability of 98 %."""
CLOSE = 0.05
"""Of the value or of the largest one, as for declared kernels: the judge has compared to far less."""
EXACT = 0.01
"""Share of integers that may differ: of equal elements, `topk` may choose another one each time."""


def sampled(result: Any, seed: int) -> Sampled:
    """Elements of all tensors in a result."""
    numbers = random.Random(seed)
    return Sampled(outputs=tuple(_sampled(each, numbers) for each in tensors_of(result)))


def _sampled(tensor: torch.Tensor, numbers: random.Random) -> SampledOutput:
    flat = tensor.detach().reshape(-1)
    places = [numbers.randrange(flat.numel()) for _ in range(ELEMENTS)] if flat.numel() else []
    if flat.numel() <= ELEMENTS:
        places = list(range(flat.numel()))
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    chosen = flat[torch.tensor(places, dtype=torch.int64, device=flat.device)]
    return SampledOutput(
        shape=tuple(tensor.shape),
        exact=not (tensor.is_floating_point() or tensor.is_complex()),
        values=tuple(chosen.double().reshape(-1).tolist()),
    )


def difference(expected: Sampled, found: Sampled, *, integers: bool) -> str | None:
    """What of the found elements is not as expected; None where everything is.

    `integers`: whether those are compared: two algorithms may choose differently among equal elements.
    """
    if len(found.outputs) != len(expected.outputs):
        return f"{len(found.outputs)} outputs, expected {len(expected.outputs)}"
    for number, (theirs, ours) in enumerate(zip(expected.outputs, found.outputs, strict=True)):
        if ours.shape != theirs.shape:
            return f"output {number} has shape {list(ours.shape)}, expected {list(theirs.shape)}"
        if ours.exact and not integers:
            continue
        wrong = _wrong(theirs.values, ours.values)
        if wrong > (EXACT * len(ours.values) if ours.exact else 0):
            return f"{wrong:,} of {len(ours.values):,} elements of output {number} that were looked at differ"
    return None


def _wrong(expected: Sequence[float], found: Sequence[float]) -> int:
    largest = max((abs(each) for each in expected if math.isfinite(each)), default=0.0)
    return sum(not _close(a, b, largest) for a, b in zip(expected, found, strict=True))


def _close(expected: float, found: float, largest: float) -> bool:
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if math.isinf(expected) or math.isinf(found):
        return expected == found
    return abs(found - expected) <= CLOSE * max(abs(expected), largest)
