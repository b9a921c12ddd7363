"""Arguments of a model from elsewhere with fresh content per batch, equal in every process for equal seeds.

`get_inputs()` may take far longer than a call. So a few lists of arguments are drawn once, under seeds that
follow from the model's, and a batch copies tensors of one of them at the speed of memory. Tensors of random
numbers are rolled along their first dimension, so that their values stay those that the problem shows; what
has a structure (integers, masks, constants, sorted, symmetric or triangular tensors) is copied as drawn.
"""

import random
from pathlib import Path
from typing import Any

import torch

from pipeline.backends.devices.device import Device
from pipeline.measure.hosting.input_content import ALIGNMENT, SLACK
from pipeline.measure.hosting.measuring_messages import HostedModel
from pipeline.sandbox.models.model_problem import ModelProblem, ProblemVariant

DRAWS = 3
DRAWN_BYTES = 1 << 26
"""Beyond them one list of arguments is drawn: memory is the limit, and drawing takes seconds."""
_NOTICEABLE = 64  # elements, from which on a tensor is no table of settings
_CORNER = 1 << 16  # elements of a tensor, by which nearly every structure is disproved


class ModelContent:
    """Arguments of `forward` on a device; on the CPU every batch moves them, as for declared kernels."""

    def __init__(self, hosted: HostedModel, device: Device) -> None:
        problem = ModelProblem(Path(hosted.problem))
        self.variant: ProblemVariant = problem.variant(hosted.sizes) if hosted.sizes else problem.declared
        self.gradients = problem.check_gradients
        self._device = device
        self._room = SLACK if device.is_host else 0
        seeds = random.Random(hosted.seed)
        first = self._drawn(seeds)
        size = sum(each.numel() * each.element_size() for each in _tensors(first))
        more = DRAWS - 1 if size <= DRAWN_BYTES else 0
        self._draws = [first, *(self._drawn(seeds) for _ in range(more))]
        self._draws = [each for each in self._draws if _fits(_tensors(each), _tensors(first))]
        self._tensors = [_tensors(each) for each in self._draws]
        self._rolled = [_is_random(list(each)) for each in zip(*self._tensors, strict=True)]
        self._blocks = [self._block(each) for each in self._tensors[0]]
        self._placed = [self._place(index, 0) for index in range(len(self._blocks))]

    def renew(self, seed: int) -> None:
        """Move all tensors and fill them."""
        numbers = random.Random(seed)
        self._placed = [
            self._place(index, numbers.randrange(self._room // ALIGNMENT + 1))
            for index in range(len(self._blocks))
        ]
        self._fill(numbers)

    def refill(self, seed: int) -> None:
        """Other content in the same tensors, which PyTorch does not count as a change of them."""
        self._fill(random.Random(seed))

    def touch(self, numbers: random.Random, *, other: bool) -> None:
        """Write a few elements of each rolled tensor again; `other`: with values from elsewhere in it."""
        for tensor, rolled in zip(self._placed, self._rolled, strict=True):
            if not rolled:
                continue
            flat = tensor.data.view(-1)
            place, source = numbers.randrange(flat.numel()), numbers.randrange(flat.numel())
            flat[place] = flat[source if other else place].clone()

    def can_touch(self) -> bool:
        """Whether there is a tensor whose values may be exchanged."""
        return any(self._rolled)

    def arguments(self) -> list[Any]:
        """Of `forward`, as they lie now."""
        placed = iter(self._placed)
        return [_with_tensors(each, placed) for each in self._draws[0]]

    def tensors(self) -> list[torch.Tensor]:
        """Those among them."""
        return list(self._placed)

    def _drawn(self, seeds: random.Random) -> list[Any]:
        return self.variant.inputs(seeds.getrandbits(31))

    def _block(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Room to move in; None of what is not dense, and stays where it is."""
        if not tensor.is_contiguous():
            return None
        return self._device.allocate(tensor.numel() + self._room // tensor.element_size(), tensor.dtype)

    def _place(self, index: int, step: int) -> torch.Tensor:
        block, like = self._blocks[index], self._tensors[0][index]
        if block is None:
            there = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
            return there.to(self._device.torch_device)
        start = step * ALIGNMENT // like.element_size()
        return block[start : start + like.numel()].view(like.shape)

    def _fill(self, numbers: random.Random) -> None:
        drawn = self._tensors[numbers.randrange(len(self._tensors))]
        for index, (placed, source) in enumerate(zip(self._placed, drawn, strict=True)):
            _copy(placed.data, source, numbers.random() if self._rolled[index] else 0.0)


def _copy(target: torch.Tensor, source: torch.Tensor, share: float) -> None:
    """Rolled by so large a share of its first dimension that is no single element."""
    dimension = next((number for number, size in enumerate(source.shape) if size > 1), None)
    if dimension is None or not share:
        target.copy_(source)
        return
    size = source.shape[dimension]
    cut = int(share * size)
    target.narrow(dimension, 0, size - cut).copy_(source.narrow(dimension, cut, size - cut))
    target.narrow(dimension, size - cut, cut).copy_(source.narrow(dimension, 0, cut))


def _is_random(draws: list[torch.Tensor]) -> bool:
    """Whether it holds random numbers without a structure that a roll would break."""
    first = draws[0]
    if not first.is_floating_point() or first.numel() < _NOTICEABLE or not first.is_contiguous():
        return False
    if any(torch.equal(first, other) for other in draws[1:]):
        return False  # a table: it is the same for every seed
    # Every structure is one of all elements: most tensors show in a corner that they have none of them.
    return not (_has_structure(_corner(first)) and _has_structure(first)) and not _half_empty(first)


def _corner(tensor: torch.Tensor) -> torch.Tensor:
    """The first elements along each dimension."""
    side = max(2, int(_CORNER ** (1 / tensor.dim())))
    return tensor[(slice(side),) * tensor.dim()]


def _has_structure(tensor: torch.Tensor) -> bool:
    """Whether it is constant, of integers, symmetric, or ordered along its first dimension."""
    values = tensor.double()
    if bool((values == values.flatten()[0]).all()) or bool((values == values.round()).all()):
        return True  # a constant, a mask, one-hot rows, numbers of classes
    if _is_square(values) and torch.allclose(values, values.transpose(-1, -2)):
        return True
    ordered = next((number for number, size in enumerate(values.shape) if size > 1), 0)
    steps = values.diff(dim=ordered)
    return bool((steps >= 0).all()) or bool((steps <= 0).all())


def _is_square(tensor: torch.Tensor) -> bool:
    return tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2]


def _half_empty(tensor: torch.Tensor) -> bool:
    """Triangular, diagonal or banded."""
    return _is_square(tensor) and int(torch.count_nonzero(tensor)) < tensor.numel() - tensor.numel() // 4


def _fits(own: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    """Whether a further draw has the tensors of the first: a problem may draw its shapes, too."""
    return len(own) == len(wanted) and all(
        (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype)
        for a, b in zip(own, wanted, strict=True)
    )


def _tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in arguments, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for each in value for tensor in _tensors(each)]
    if isinstance(value, dict):
        return [tensor for each in value.values() for tensor in _tensors(each)]
    return []


def _with_tensors(value: Any, placed: Any) -> Any:
    """The same with other tensors, in order."""
    if isinstance(value, torch.Tensor):
        return next(placed)
    if type(value) in (list, tuple):
        return type(value)(_with_tensors(each, placed) for each in value)
    if isinstance(value, dict):
        return {key: _with_tensors(each, placed) for key, each in value.items()}
    return value
