"""A kernel on concrete dimensions: all that is needed to make its tensors and to call it."""

import math

import msgspec

from pipeline.records.configuration.kernel import Tensor, TunableValue
from pipeline.records.formula import evaluate_number
from pipeline.records.record import Record


class Problem(Record, frozen=True, kw_only=True):
    """kernel x workload, resolved."""

    kernel: str
    dimensions: dict[str, int]
    """In declared order, which is the order of the C ABI."""
    tensors: dict[str, Tensor]
    """`dtype` is concrete here (`float32`, never `element`); the C ABI has inputs first, then outputs."""
    scalars: dict[str, float]
    attributes: dict[str, TunableValue]
    element: str
    """The workload's dtype."""
    order: tuple[str, ...] = ()
    """Tensors, dimensions and scalars as declared: the order of the C ABI, which sorted JSON loses."""

    def __post_init__(self) -> None:
        """Take the order from the declaration, or bring what was read back from JSON into it."""
        if not self.order:
            declared = (*self.tensors, *self.dimensions, *self.scalars)
            msgspec.structs.force_setattr(self, "order", declared)
        rank = {name: number for number, name in enumerate(self.order)}
        for field in ("tensors", "dimensions", "scalars"):
            items = sorted(getattr(self, field).items(), key=lambda item: rank.get(item[0], len(rank)))
            msgspec.structs.force_setattr(self, field, dict(items))

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Concrete shape of a tensor."""
        return tuple(self.extent(axis) for axis in self.tensors[tensor].shape)

    def integer_range(self, tensor: str) -> tuple[int, int]:
        """Smallest value of an integer input, and the number above its largest one."""
        declared = self.tensors[tensor]
        least, end = (
            self.extent(each) if isinstance(each, str) else each
            for each in (declared.at_least, 2 if declared.below is None else declared.below)
        )
        return least, max(end, least + 1)

    def drawn_range(self, tensor: str) -> tuple[int, int]:
        """The same of the numbers to draw: ascending distinct ones are these, each plus its place."""
        least, end = self.integer_range(tensor)
        after = self.shape(tensor)[-1] - 1 if self.tensors[tensor].distinct else 0
        return least, max(end - max(after, 0), least + 1)

    def extent(self, axis: str) -> int:
        """Concrete size of an axis, which is a dimension or a formula."""
        if axis in self.dimensions:
            return self.dimensions[axis]
        return int(evaluate_number(axis, {**self.attributes, **self.dimensions}))

    @property
    def input_share(self) -> float:
        """Elements of inputs over those of all tensors: how a call's bytes split into read and written."""
        size = {name: math.prod(self.shape(name)) for name in self.tensors}
        return sum(size[name] for name in self.names("input")) / max(1, sum(size.values()))

    def with_dimensions(self, dimensions: dict[str, int]) -> "Problem":
        """The same kernel on other dimensions."""
        return msgspec.structs.replace(self, dimensions=self.dimensions | dimensions)

    def names(self, role: str) -> tuple[str, ...]:
        """Tensors of a role (`input`, `output`), in declared order."""
        return tuple(name for name, tensor in self.tensors.items() if tensor.role == role)
