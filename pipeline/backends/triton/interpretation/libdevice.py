"""NVIDIA's and AMD's device libraries for Triton's interpreter, which leaves their functions without a body.

Names are those of `triton.language.extra.libdevice`. Each function is NumPy's in the operands' type, float32
for bfloat16; error functions go through Python's `math`, in float64.
"""

import functools
import importlib.machinery
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as of_cuda
from triton.language.extra.hip import libdevice as of_hip

from pipeline.backends.triton.triton_internals import interpreter_class

TensorHandle = interpreter_class("TensorHandle")
_MENDED = "_kernelmill_mended"

Function = Callable[..., Any]


def _away(values: np.ndarray) -> np.ndarray:
    """Nearest integer, halves away from zero, as C's `round`."""
    rounded: np.ndarray = np.copysign(np.floor(np.abs(values) + 0.5), values)
    return rounded


def _inverse_root(values: np.ndarray) -> np.ndarray:
    inverse: np.ndarray = 1.0 / np.sqrt(values)
    return inverse


def special(name: str, values: np.ndarray) -> np.ndarray:
    """The function of `torch.special`, for arrays; observers of a candidate replace this."""
    array: np.ndarray = getattr(torch.special, name)(torch.from_numpy(np.array(values))).numpy()
    return array


def _torchs(name: str) -> Function:
    return lambda values: special(name, values)


def _norm(*values: np.ndarray) -> np.ndarray:
    root: np.ndarray = np.sqrt(sum(value * value for value in values))
    return root


def _exponent(values: np.ndarray) -> Any:
    return np.frexp(values)[1] - 1


def _unpacked(values: np.ndarray) -> np.ndarray:
    """Bits along a new last dimension, the lowest first."""
    return np.unpackbits(np.ascontiguousarray(values)[..., None].view(np.uint8), axis=-1, bitorder="little")


def _reversed(values: np.ndarray) -> Any:
    """Bits in the opposite order."""
    bits = _unpacked(values)
    return np.packbits(bits, axis=-1).view(values.dtype)[..., 0]


def _leading_zeros(values: np.ndarray) -> Any:
    bits = _unpacked(values)
    return np.where(values == 0, bits.shape[-1], bits[..., ::-1].argmax(axis=-1))


def _first_set(values: np.ndarray) -> Any:
    """Position of the lowest bit that is set, from 1; 0 where none is."""
    bits = _unpacked(values)
    return np.where(values == 0, 0, bits.argmax(axis=-1) + 1)


def _set_bits(values: np.ndarray) -> Any:
    return np.bitwise_count(values.view(values.dtype.str.replace("i", "u")))


def _high_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    wide = np.vectorize(lambda a, b: (int(a) * int(b)) >> (8 * left.dtype.itemsize), otypes=[left.dtype])
    product: np.ndarray = wide(left, right)
    return product


def _bits(dtype: Any) -> Function:
    return lambda values: np.ascontiguousarray(values).view(dtype).reshape(np.shape(values))


_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in (
        "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh",
        "cosh", "tanh", "hypot", "floor", "ceil", "trunc", "rint", "copysign", "fmod",
    )},
    **{f"a{name}": getattr(np, f"arc{name}") for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2",
    )},
    **{name: np.vectorize(getattr(math, name), otypes=[np.float64]) for name in ("erf", "erfc", "lgamma")},
    "abs": np.abs, "fabs": np.abs, "pow": np.power, "round": _away, "nearbyint": np.rint,
    "rsqrt": _inverse_root, "rsqrt_rn": _inverse_root, "sqrt_rn": np.sqrt,
    "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply, "div_rn": np.divide,
    "fma": lambda a, b, c: a * b + c, "fma_rn": lambda a, b, c: a * b + c,
    "rcp_rn": lambda a: 1.0 / a, "fmin": np.fmin, "fmax": np.fmax,
    "isnan": np.isnan, "isinf": np.isinf, "isfinited": np.isfinite, "finitef": np.isfinite,
    "signbit": np.signbit, "exp10": lambda a: np.power(10.0, a),
    "fast_expf": np.exp, "fast_exp10f": lambda a: np.power(10.0, a), "fast_logf": np.log,
    "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_sinf": np.sin, "fast_cosf": np.cos,
    "fast_tanf": np.tan, "fast_powf": np.power, "fast_dividef": np.divide, "fast_tanhf": np.tanh,
    **{name: _torchs(torchs) for name, torchs in {
        "erfinv": "erfinv", "erfcx": "erfcx", "normcdf": "ndtr", "normcdfinv": "ndtri", "j0": "bessel_j0",
        "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1",
    }.items()},
    "erfcinv": lambda a: _torchs("erfinv")(1.0 - a), "tgamma": np.vectorize(math.gamma, otypes=[np.float64]),
    "rhypot": lambda *a: 1.0 / _norm(*a), "norm3d": _norm, "norm4d": _norm,
    "rnorm3d": lambda *a: 1.0 / _norm(*a), "rnorm4d": lambda *a: 1.0 / _norm(*a),
    "rcbrt": lambda a: 1.0 / np.cbrt(a), "sinpi": lambda a: np.sin(np.pi * a),
    "cospi": lambda a: np.cos(np.pi * a), "nextafter": np.nextafter,
    "remainder": np.vectorize(math.remainder, otypes=[np.float64]),
    "fdim": lambda a, b: np.where(a > b, a - b, a * 0), "ldexp": np.ldexp, "scalbn": np.ldexp,
    "logb": _exponent, "saturatef": lambda a: np.fmin(np.fmax(a, 0), 1),
    "brev": _reversed, "mulhi": _high_product, "hadd": lambda a, b: (a >> 1) + (b >> 1) + (a & b & 1),
    "rhadd": lambda a, b: (a >> 1) + (b >> 1) + ((a | b) & 1),
}  # fmt: skip
_ROUNDINGS: dict[str, Function] = {"rd": np.floor, "rn": np.rint, "ru": np.ceil, "rz": np.trunc}
_INTEGERS = {"int": tl.int32, "uint": tl.uint32, "ll": tl.int64, "ull": tl.uint64}
_FLOATS = {"float": tl.float32, "double": tl.float64}
_CONVERSIONS: dict[str, tuple[Function, Any]] = {
    **{
        f"{source}2{target}_{mode}": (rounded, kind)
        for source in _FLOATS
        for target, kind in _INTEGERS.items()
        for mode, rounded in _ROUNDINGS.items()
    },
    **{
        f"{source}2{target}_{mode}": (np.positive, kind)
        for source in _INTEGERS
        for target, kind in _FLOATS.items()
        for mode in _ROUNDINGS
    },
    "ilogb": (_exponent, tl.int32),
    "clz": (_leading_zeros, tl.int32),
    "popc": (_set_bits, tl.int32),
    "ffs": (_first_set, tl.int32),
    "double2float_rn": (np.positive, tl.float32),
    "float_as_int": (_bits(np.int32), tl.int32),
    "float_as_uint": (_bits(np.uint32), tl.uint32),
    "double_as_longlong": (_bits(np.int64), tl.int64),
    "longlong_as_double": (_bits(np.float64), tl.float64),
    "int_as_float": (_bits(np.float32), tl.float32),
    "uint_as_float": (_bits(np.float32), tl.float32),
    "llrint": (np.rint, tl.int64),
    "llround": (_away, tl.int64),
}
"""Name -> what rounds, and the type of the result."""


def mend(widen: Callable[[Any], Any], narrow: Callable[[Any], Any]) -> None:
    """Give the functions bodies; `widen` and `narrow` convert handles of bfloat16 to float32 and back."""
    if getattr(libdevice, _MENDED, False):
        return

    def give_bodies(library: Any) -> None:
        for name in [name for name, value in vars(library).items() if _is_function(library, name, value)]:
            setattr(library, name, _body(name, widen, narrow))

    for library in (libdevice, of_cuda, of_hip):  # a kernel may name the library of one vendor
        give_bodies(library)
    _watch_copies({str(library.__file__) for library in (libdevice, of_cuda, of_hip)}, give_bodies)
    setattr(libdevice, _MENDED, True)


def _watch_copies(files: set[str], give_bodies: Callable[[Any], None]) -> None:
    """Packages execute these files again, as modules of their own."""
    loader = importlib.machinery.SourceFileLoader
    execute = loader.exec_module

    @functools.wraps(execute)
    def executed(self: Any, module: Any) -> None:
        execute(self, module)
        if self.path in files:
            give_bodies(module)

    loader.exec_module = executed  # type: ignore[method-assign]


def _is_function(library: Any, name: str, value: Any) -> bool:
    own = getattr(value, "__module__", "") == library.__name__
    return callable(value) and own and not name.startswith("_")


def _body(name: str, widen: Callable[[Any], Any], narrow: Callable[[Any], Any]) -> Function:
    if name in _FUNCTIONS:
        return _interpreted(name, _FUNCTIONS[name], widen, narrow)
    if name in _CONVERSIONS:
        return functools.partial(_converted, *_CONVERSIONS[name])

    def refuse(*_operands: Any, **_: Any) -> Any:
        raise NotImplementedError(f"libdevice.{name} not supported in interpreter mode")

    return refuse


def _converted(rounded: Function, target: Any, operand: Any, **_: Any) -> Any:
    with np.errstate(all="ignore"):
        values = rounded(_data(operand.handle)).astype(_NUMPY[target])
    return _tensor(values, target, operand.type)


_NUMPY = {
    tl.int32: np.int32,
    tl.uint32: np.uint32,
    tl.int64: np.int64,
    tl.uint64: np.uint64,
    tl.float32: np.float32,
    tl.float64: np.float64,
}


def _interpreted(
    name: str, function: Function, widen: Callable[[Any], Any], narrow: Callable[[Any], Any]
) -> Function:
    def call(*operands: Any, **_: Any) -> Any:
        tensors = [item for item in operands if isinstance(item, tl.tensor)]
        kind = tensors[0].type
        handles = [item.handle if isinstance(item, tl.tensor) else item for item in operands]
        plain = [_data(widen(handle)) for handle in handles]
        with np.errstate(all="ignore"):
            result = np.asarray(function(*plain))
        if result.dtype == np.bool_:
            return _tensor(result.astype(np.int32), tl.int32, kind)
        if kind.scalar == tl.bfloat16:
            handle = TensorHandle(result.astype(np.float32), tl.float32)
            return tl.tensor(narrow(handle), kind)
        return _tensor(result.astype(plain[0].dtype), kind.scalar, kind)

    call.__name__ = name
    return call


def _tensor(values: np.ndarray, scalar: Any, like: Any) -> Any:
    kind = tl.block_type(scalar, list(like.shape)) if like.is_block() else scalar
    return tl.tensor(TensorHandle(values, scalar), kind)


def _data(handle: Any) -> Any:
    return handle.data if isinstance(handle, TensorHandle) else np.float32(handle)
