"""A kernel on concrete dimensions: all that is needed to make its tensors and to call it."""

import msgspec

from pipeline.records.kernel import Tensor, TunableValue
from pipeline.records.record import Record


class Problem(Record, frozen=True, kw_only=True):
    """kernel x workload, resolved."""

    kernel: str
    dimensions: dict[str, int]
    """In declared order, which is the order of the C ABI."""
    tensors: dict[str, Tensor]
    """`dtype` is concrete here (`float32`, never `element`); order is the order of the C ABI."""
    scalars: dict[str, float]
    attributes: dict[str, TunableValue]
    element: str
    """The workload's dtype."""

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Concrete shape of a tensor."""
        return tuple(self.dimensions[axis] for axis in self.tensors[tensor].shape)

    def with_dimensions(self, dimensions: dict[str, int]) -> "Problem":
        """The same kernel on other dimensions."""
        return msgspec.structs.replace(self, dimensions=self.dimensions | dimensions)

    def names(self, role: str) -> tuple[str, ...]:
        """Tensors of a role (`input`, `output`), in declared order."""
        return tuple(name for name, tensor in self.tensors.items() if tensor.role == role)
