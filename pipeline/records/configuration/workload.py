"""The dimensions, dtype and layout of a real use."""

from typing import Literal

from pipeline.records.record import Record

ElementType = Literal["float32", "float16", "bfloat16"]


class Workload(Record, frozen=True, kw_only=True):
    """Named dimensions of a model's layer, shared by many kernels."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    source: str
    """Where the dimensions are from."""
    dtype: ElementType
    """Type of the elements."""
    dimensions: dict[str, int]
    """Dimension name (`tokens`, `heads`, `hidden`, …) -> size."""
