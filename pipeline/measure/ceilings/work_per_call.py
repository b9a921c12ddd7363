"""What one call of a kernel has to do, by its formulas. In: a ProfileSpec. Out: operations and bytes."""

import math
import re

from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.records.formula import ELEMENT_BYTES, evaluate_number
from pipeline.records.planning.specs import ProfileSpec


def work_of(spec: ProfileSpec) -> WorkPerCall:
    """The formula's bytes are split like the tensors' sizes."""
    problem = spec.problem
    assert spec.cost.flops is not None and spec.cost.bytes is not None  # the plan asks for them
    names = {**problem.attributes, **problem.dimensions, "itemsize": ELEMENT_BYTES[problem.element]}
    size = {name: math.prod(problem.shape(name)) for name in problem.tensors}
    held = sum(size[name] * _itemsize(tensor.dtype) for name, tensor in problem.tensors.items())
    total = evaluate_number(spec.cost.bytes, names)
    return WorkPerCall(
        flops=evaluate_number(spec.cost.flops, names),
        read=problem.input_share * total,
        written=(1 - problem.input_share) * total,
        unit=spec.cost.unit,
        dtype=problem.element,
        tensor_bytes=held,
    )


def _itemsize(dtype: str) -> int:
    """Bytes of one element: torch's names carry the bits, all but `bool`."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1
