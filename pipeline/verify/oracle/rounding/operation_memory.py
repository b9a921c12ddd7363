"""What sampling rounding errors remembers of operations, and their twins that return what they write."""

from typing import Any

import torch

from pipeline.verify.oracle.rounding.rounded_tensors import wide


class Memory:
    """What the runs of one function share: dtypes of results, deviations, and which operations fell back."""

    def __init__(self) -> None:
        self.dtypes: dict[Any, list[torch.dtype]] = {}
        self.deviations: list[tuple[str, Any]] = []
        self.bytes = 0
        self.work = 0.0
        """Elements that were read and written, multiplications weighted."""
        self.unsupported: set[str] = set()


def twin_of(name: str, function: Any) -> Any:
    """The operation that returns what this one writes to its first argument, or None."""
    schema = function._schema
    written = [item for item in schema.arguments if item.alias_info is not None and item.alias_info.is_write]
    if not name.endswith("_") or len(written) != 1 or written[0].name != schema.arguments[0].name:
        return None
    packet = getattr(torch.ops.aten, name[:-1], None)
    if packet is None:
        return None
    wanted = [str(item.type) for item in schema.arguments]
    overloads = (getattr(packet, overload) for overload in packet.overloads())
    return next((item for item in overloads if _types(item) == wanted), None)


def _types(function: Any) -> list[str]:
    return [str(item.type) for item in function._schema.arguments]


def wide_dtype(item: Any) -> Any:
    """A dtype widened, anything else as it is."""
    return wide(item) if isinstance(item, torch.dtype) else item
