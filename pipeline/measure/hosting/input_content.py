"""The tensors of one problem with fresh content per batch, equal in every process for equal seeds.

Drawing millions of random numbers per batch would cost more than the calls. So each process draws one pool of
normal numbers, and a batch copies random stretches of it: fresh content at the speed of memory.
"""

import math
import random
from typing import TYPE_CHECKING

from pipeline.backends.devices.device import Device
from pipeline.records.planning.problem import Problem

if TYPE_CHECKING:
    import torch

POOL = 1 << 20  # elements in one stretch
ALIGNMENT = 64  # bytes: what torch's allocator on the CPU guarantees
SLACK = 1 << 16  # bytes by which a tensor's start may move


class Content:
    """Tensors of a problem on a device, outputs included.

    On the CPU each batch also moves every tensor by a random multiple of 64 bytes: where a tensor lies
    relative to pages and to other tensors can change the time of a kernel by a few percent, and would
    otherwise stay as it happens to be for the life of a process (Mytkowicz et al. 2009, ASPLOS).
    """

    def __init__(self, problem: Problem, device: Device) -> None:
        self._problem = problem
        self._room = SLACK if device.is_host else 0
        self._blocks = {name: self._allocate(name, device) for name in problem.tensors}
        self._pools = {
            self._dtype(name): _pool(self._dtype(name), device.torch_device, self._pool_length())
            for name in problem.names("input")
        }
        self.tensors: dict[str, torch.Tensor] = {}

    def renew(self, seed: int) -> None:
        """Place all tensors and fill the inputs; outputs keep whatever lay there."""
        numbers = random.Random(seed)
        for name in self._problem.tensors:
            self.tensors[name] = self._place(name, numbers)
        for name in self._problem.names("input"):
            pool = self._pools[self._dtype(name)]
            flat = self.tensors[name].view(-1)
            stretch = len(pool) // 2
            for start in range(0, flat.numel(), stretch):
                part = flat[start : start + stretch]
                offset = numbers.randrange(stretch)
                part.copy_(pool[offset : offset + part.numel()])
                if not part.is_floating_point():
                    _into_range(part, *self._problem.drawn_range(name))
            if self._problem.tensors[name].nonnegative:
                flat.abs_()
            if self._problem.tensors[name].cumulative:
                self._ascend(name)
            if self._problem.tensors[name].distinct:
                self._separate(name, numbers)
            self._limit_rows(name)

    def inputs(self) -> tuple["torch.Tensor", ...]:
        """Inputs in declared order, as the reference takes them."""
        return tuple(self.tensors[name] for name in self._problem.names("input"))

    def outputs(self) -> dict[str, "torch.Tensor"]:
        """Outputs as they lie now, by name."""
        return {name: self.tensors[name] for name in self._problem.names("output")}

    def _ascend(self, name: str) -> None:
        lengths = self.tensors[name]
        lengths.copy_(lengths.sort(-1).values)
        lengths[..., -1:] = self._problem.integer_range(name)[1] - 1

    def _separate(self, name: str, numbers: random.Random) -> None:
        """Rows of distinct numbers, in one random order of places for all of them."""
        import torch

        lists, end = self.tensors[name], self._problem.integer_range(name)[1]
        places = list(range(lists.shape[-1]))
        numbers.shuffle(places)
        ascending = lists.sort(-1).values + torch.arange(len(places), dtype=lists.dtype, device=lists.device)
        lists.copy_(ascending.clamp_(max=end - 1)[..., places])

    def _limit_rows(self, name: str) -> None:
        import torch

        norm = self._problem.tensors[name].row_norm
        if norm is not None:
            rows = self.tensors[name]
            lengths = torch.linalg.vector_norm(rows, dim=-1, keepdim=True, dtype=torch.float32)
            rows.mul_(norm / lengths.clamp_min_(norm))

    def _dtype(self, name: str) -> "torch.dtype":
        import torch

        dtype = getattr(torch, self._problem.tensors[name].dtype)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"tensor {name}: '{self._problem.tensors[name].dtype}' is no dtype of torch")
        return dtype

    def _elements(self, name: str) -> int:
        return math.prod(self._problem.shape(name))

    def _pool_length(self) -> int:
        return max(1, min(POOL, max(self._elements(name) for name in self._problem.names("input"))))

    def _allocate(self, name: str, device: Device) -> "torch.Tensor":
        dtype = self._dtype(name)
        return device.allocate(self._elements(name) + self._room // dtype.itemsize, dtype)

    def _place(self, name: str, numbers: random.Random) -> "torch.Tensor":
        start = numbers.randrange(self._room // ALIGNMENT + 1) * ALIGNMENT // self._dtype(name).itemsize
        return self._blocks[name][start : start + self._elements(name)].view(self._problem.shape(name))


def _pool(dtype: "torch.dtype", device: str, length: int) -> "torch.Tensor":
    """Two equal stretches, so that a copy may start anywhere in the first; integers are any of the type."""
    import torch

    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        numbers = torch.randn(length, generator=generator)
    else:
        least, largest = _limits(dtype)
        numbers = torch.randint(
            max(least, -(1 << 62)), min(largest, 1 << 62) + 1, (length,), generator=generator
        )
    return torch.cat((numbers, numbers)).to(device=device, dtype=dtype)


def _into_range(values: "torch.Tensor", least: int, end: int) -> None:
    """Let integers of a whole type be from `least` to below `end`, in place."""
    limits = _limits(values.dtype)
    if (least, end - 1) == limits:
        return
    if end - least <= limits[1]:
        values.remainder_(end - least).add_(least)
    else:  # more numbers than half of the type has
        values.copy_(values.long().remainder_(end - least).add_(least))


def _limits(dtype: "torch.dtype") -> tuple[int, int]:
    """Smallest and largest number of an integer type."""
    import torch

    if dtype == torch.bool:
        return 0, 1
    found = torch.iinfo(dtype)
    return found.min, found.max
