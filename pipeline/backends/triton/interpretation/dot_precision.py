"""Products of float32 operands in Triton's interpreter, as the tensor cores of a GPU compute them.

In: the operands of `tl.dot` and its `input_precision`. Out: the product, rounded as on the device, and a
remark if operands were rounded to tf32. Triton's interpreter multiplies in float32 whatever the precision, so
that a kernel which asks for too little would pass there.

- `tf32`: operands are cut off after 10 explicit bits of the mantissa (`mma.*.tf32` ignores the others; Triton
  does not round before).
- `tf32x3`, `bf16x3`, `bf16x6`: operands are sums of two or three such parts, and the products of parts that
  count are added up (Triton's pass `F32DotTC`).
- `ieee`: float32.

Sums are rounded to float32 after every eight products, as tensor cores round them, in the order of `K`. NumPy
would leave the order to a library that chooses it by the processor and by how the operands lie in memory, so
that a backward which computes scores again, transposed, would not find those of its forward: where they are
large, their exponentials differ by more than any bound. No device does that.

A kernel that does not say how precise its products are gets `ieee`, unless the environment sets Triton's own
`TRITON_F32_DEFAULT`. The default of the target, tf32 on NVIDIA GPUs, would fail kernels whose authors never
chose it, on problems that they do not choose either.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton import knobs

from pipeline.backends.triton.interpretation import eight_bits
from pipeline.backends.triton.triton_internals import interpreter

REMARK = (
    '`tl.dot` with `input_precision="tf32"` rounded float32 operands to 10 bits of mantissa: "tf32x3" and'
    ' "ieee" do not, and `verify.tf32_products=true` accepts it'
)
_LOW_BITS = np.uint32((1 << 13) - 1)  # of a float32, beyond those of tf32
_SUMMED_AT_ONCE = 8  # by `mma.m16n8k8` and `m8n8k4` in tf32; 16-bit operands are summed in no smaller groups
_EXACT = (tl.float16, tl.float32)  # in float32; bfloat16 operands have become that before
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")

_remarks: dict[str, None] = {}


def take_remarks() -> tuple[str, ...]:
    """What explains a wrong value, since the last call of this."""
    found = tuple(_remarks)
    _remarks.clear()
    return found


def install() -> None:
    """Let the interpreter multiply like a GPU; called once, by `interpreter.mend`."""
    semantic = interpreter().interpreter_semantic
    semantic.builder.options = dataclasses.replace(
        semantic.builder.options, allowed_dot_input_precisions=_PRECISIONS
    )
    if knobs.language.fp32_default is None:
        knobs.language.fp32_default = "ieee"
    builder = interpreter().InterpreterBuilder
    builder.create_dot = _rounded(builder.create_dot)


def _rounded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Of `create_dot`, whose sums are in the type of the accumulator."""

    def dot(self: Any, left: Any, right: Any, sums: Any, precision: Any, *rest: Any) -> Any:
        kinds = [operand.dtype.scalar for operand in (left, right)]
        if sums.dtype.scalar != tl.float32 or not all(
            kind in _EXACT or eight_bits.is_eight_bits(kind) for kind in kinds
        ):
            return method(self, left, right, sums, precision, *rest)
        lefts, rights = (
            eight_bits.decode(operand.data, kind) if eight_bits.is_eight_bits(kind) else operand.data
            for operand, kind in zip((left, right), kinds, strict=True)
        )
        parts = _PARTS.get(str(precision).rpartition(".")[2])
        if parts is None or kinds != [tl.float32, tl.float32]:
            products = multiply(lefts, rights)
        else:
            if len(parts) == 1 and (_loses(lefts) or _loses(rights)):
                _remarks[REMARK] = None
            products = _products(lefts, rights, parts)
        return interpreter().TensorHandle(products + sums.data, tl.float32)

    return dot


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[..., M, K] x [..., K, N] -> [..., M, N] in float32, the same however the operands lie in memory."""
    with np.errstate(invalid="ignore", over="ignore"):
        # In double precision, eight products of float32 lose nothing that a float32 could hold.
        left, right = left.astype(np.float64), right.astype(np.float64)
        sums: np.ndarray = np.zeros((), dtype=np.float32)
        for start in range(0, left.shape[-1], _SUMMED_AT_ONCE):
            part = slice(start, start + _SUMMED_AT_ONCE)
            sums = sums + np.matmul(left[..., part], right[..., part, :]).astype(np.float32)
    return sums


Rounding = Callable[[np.ndarray], np.ndarray]


def truncate(values: np.ndarray) -> np.ndarray:
    """float32 -> the tf32 that a tensor core reads."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    cut: np.ndarray = (bits & ~_LOW_BITS).view(np.float32)
    return cut


def round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """To nearest even, in float32."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


_PARTS: dict[str, tuple[Rounding, ...]] = {
    "TF32": (truncate,),
    "TF32x3": (truncate, truncate),
    "BF16x3": (round_to_bfloat16, round_to_bfloat16),
    "BF16x6": (round_to_bfloat16, round_to_bfloat16, round_to_bfloat16),
}


def _products(left: np.ndarray, right: np.ndarray, roundings: tuple[Rounding, ...]) -> np.ndarray:
    """Sum of the products of parts, the smallest first; what is left of an infinity counts as 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        lefts, rights = _parts(left, roundings), _parts(right, roundings)
        rest: np.ndarray = np.zeros((), dtype=np.float32)
        for order in range(len(roundings) - 1, 0, -1):
            for number in range(order + 1):
                rest = rest + multiply(lefts[number], rights[order - number])
        first = multiply(lefts[0], rights[0])
        return first + np.where(np.isnan(rest), np.float32(0), rest)


def _parts(values: np.ndarray, roundings: tuple[Rounding, ...]) -> list[np.ndarray]:
    parts, rest = [], values
    for rounding in roundings:
        parts.append(rounding(rest))
        rest = rest - parts[-1]
    return parts


def _loses(values: np.ndarray) -> bool:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return bool((bits & _LOW_BITS).any())
