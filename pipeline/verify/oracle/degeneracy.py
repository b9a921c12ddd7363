"""Filters for degenerate problems, which a constant, or no work at all, would nearly solve.

In: outputs of a problem's own model, under several seeds of its inputs and of its initial weights. Out: one
line for each filter that applies. The filters are those of robust-kbench (Lange et al. 2025,
arXiv:2509.14279): range, spread over all elements and along each axis, effect of the inputs, effect of the
weights. Such a problem is still judged: bounds are derived, so a constant does not pass here; but it passes
`allclose` with the tolerances that benchmarks use, and figures on such a problem mean little.
"""

import itertools
from collections.abc import Iterator, Sequence

import torch

LIMIT = 1e-2
"""The usual absolute tolerance of such benchmarks."""

Outputs = Sequence[torch.Tensor]
"""All tensors that the model returned, in order."""


def degeneracies(
    outputs_by_seed: Sequence[Outputs], outputs_by_weights: Sequence[Outputs] = ()
) -> tuple[str, ...]:
    """One line for each filter that the problem falls through, each naming how far below the limit it is.

    `outputs_by_seed`: the same model on inputs of several seeds. `outputs_by_weights`: equal inputs, models
    that were constructed under several seeds; empty where the model has no weights. Comparisons need two.
    """
    if not outputs_by_seed or not any(tensor.numel() for tensor in outputs_by_seed[0]):
        return ()
    found = [
        _range(outputs_by_seed),
        _spread(outputs_by_seed),
        *_axes(outputs_by_seed),
        _effect(outputs_by_seed, "inputs of other seeds"),
        _effect(outputs_by_weights, "other initial weights"),
    ]
    return tuple(line for line in found if line is not None)


def _range(outputs: Sequence[Outputs]) -> str | None:
    """All values near zero: zeros pass."""
    largest = max((float(values.abs().max()) for values in _all(outputs)), default=0.0)
    if largest > LIMIT:
        return None
    return f"output range: no value is beyond ±{largest:.2g}, zeros pass a tolerance of {LIMIT:g}"


def _spread(outputs: Sequence[Outputs]) -> str | None:
    """All values near their mean: the mean passes."""
    spreads = [float(values.std(correction=0)) for values in _all(outputs) if values.numel() > 1]
    if not spreads or max(spreads) > LIMIT:
        return None
    return f"output spread: the standard deviation over all elements is {max(spreads):.2g}, their mean passes"


def _axes(outputs: Sequence[Outputs]) -> Iterator[str]:
    """No change along an axis: one slice, repeated, passes. Only where the elements as a whole differ."""
    for number, tensors in enumerate(zip(*outputs, strict=False)):
        several = [values for tensor in tensors if (values := _values(tensor)) is not None]
        if len(several) < len(tensors) or len({values.dim() for values in several}) != 1:
            continue
        if max(float(values.std(correction=0)) for values in several) <= LIMIT:
            continue
        for axis in range(several[0].dim()):
            if min(values.shape[axis] for values in several) < 2:
                continue
            spread = max(float(values.std(dim=axis, correction=0).max()) for values in several)
            if spread <= LIMIT:
                yield f"output spread: output {number} is the same all along axis {axis} (up to {spread:.2g})"


def _effect(outputs: Sequence[Outputs], cause: str) -> str | None:
    """What is computed does not depend on what it is computed from: an answer that was kept passes."""
    changes = []
    for first, second in itertools.pairwise(outputs):
        for one, other in zip(first, second, strict=False):
            left, right = _values(one), _values(other)
            if left is None or right is None:
                continue
            if left.shape != right.shape:
                return None
            changes.append(float((left - right).abs().max()))
    if not changes or max(changes) > LIMIT:
        return None
    return f"insensitive: {cause} change no output by more than {max(changes):.2g}"


def _all(outputs: Sequence[Outputs]) -> Iterator[torch.Tensor]:
    for tensors in outputs:
        for tensor in tensors:
            values = _values(tensor)
            if values is not None:
                yield values


def _values(tensor: torch.Tensor) -> torch.Tensor | None:
    """As float64 without NaN and infinities, which say something; None where there is nothing."""
    if not tensor.numel():
        return None
    plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return torch.nan_to_num(plain.detach().to(torch.float64), nan=1e300, posinf=1e301, neginf=-1e301)
