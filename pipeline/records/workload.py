"""The dimensions, dtype and layout of a real use."""

from typing import Literal

from pipeline.records.record import Record

ElementType = Literal["float32", "float16", "bfloat16"]


class Workload(Record, frozen=True, kw_only=True):
    """Named dimensions of a model's layer, shared by many kernels."""

    name: str
    description: str
    source: str
    dtype: ElementType
    dimensions: dict[str, int]
