"""Call a compiled C++ kernel on torch tensors, checked against the C ABI."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import torch

from pipeline.backends.backend import LaunchError
from pipeline.records.kernel import Tensor
from pipeline.records.problem import Problem

_NOTHING = "getpagesize"  # of the C library: returns a constant, and does not look at its arguments
_MAPS = Path("/proc/self/maps")


class NativeLaunch:
    """`launch(tensors)`: every tensor by name; writes the outputs in place, raises LaunchError."""

    def __init__(self, library: Path, entry: str, problem: Problem) -> None:
        share_openmp()
        self._entry = entry
        self._problem = problem
        self._names = (*problem.names("input"), *problem.names("output"))
        self._strided = [name for name in self._names if problem.tensors[name].layout == "row_strided"]
        self._function = ctypes.CDLL(str(library))[entry]
        self._function.restype = ctypes.c_int
        integers = len(problem.dimensions) + len(self._strided)
        self._function.argtypes = (
            [ctypes.c_void_p] * len(self._names)
            + [ctypes.c_int64] * integers
            + [ctypes.c_double] * len(problem.scalars)
        )
        self._nothing = ctypes.CDLL(None)[_NOTHING]
        self._nothing.restype, self._nothing.argtypes = ctypes.c_int, self._function.argtypes
        self._layout: tuple[object, ...] = ()
        self._numbers: tuple[float, ...] = ()

    def __call__(self, tensors: dict[str, torch.Tensor]) -> None:
        """Equal layouts are checked once, as the checks would outweigh a small kernel; no pointer is kept."""
        code = self._call(self._function, tensors)
        if code != 0:
            raise LaunchError(f"{self._entry} returned {code}")

    def host(self, tensors: dict[str, torch.Tensor]) -> None:
        """All that a call does but the kernel: a function that does nothing gets its arguments."""
        self._call(self._nothing, tensors)

    def _call(self, function: Callable[..., int], tensors: dict[str, torch.Tensor]) -> int:
        arguments = [tensors[name] for name in self._names]
        layout = tuple([(item.shape, item.stride(), item.dtype, item.is_cpu) for item in arguments])
        if layout != self._layout:
            self._numbers = self._check(tensors)
            self._layout = layout
        return function(*[item.data_ptr() for item in arguments], *self._numbers)

    def _check(self, tensors: dict[str, torch.Tensor]) -> tuple[float, ...]:
        """Dimensions, row strides and scalars of a call, or LaunchError with what does not fit."""
        dimensions: dict[str, int] = {}
        for name in self._names:
            declared = self._problem.tensors[name]
            tensor = tensors[name]
            _check_type(name, tensor, declared)
            for axis, size in zip(declared.shape, tensor.shape, strict=True):
                if dimensions.setdefault(axis, size) != size:
                    raise LaunchError(f"{name}: got {axis} = {size}, expected {dimensions[axis]} as before")
            _check_strides(name, tensor, declared)
        sizes = self._problem.dimensions | dimensions
        return (
            *(sizes[axis] for axis in self._problem.dimensions),
            *(tensors[name].stride(-2) for name in self._strided),
            *self._problem.scalars.values(),
        )


def share_openmp() -> None:
    """Make kernels that are loaded from now on use the OpenMP runtime that is already in this process.

    A kernel is linked against the compiler's libgomp.so.1; torch brings its own copy, in some releases under
    another name. With both loaded there would be two thread pools: torch.set_num_threads would not reach the
    kernel, and each pool's idle threads would spin on the cores that the other one needs, so candidate and
    baseline would be measured under different conditions. Symbols are looked up in the global scope first, so
    it is enough to put torch's copy there.
    """
    try:
        maps = _MAPS.read_text()
    except OSError:  # not Linux: the loader's own rules apply
        return
    for line in maps.splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith("libgomp"):
            ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_GLOBAL)
            return


def _check_type(name: str, tensor: torch.Tensor, declared: Tensor) -> None:
    if not tensor.is_cpu:
        raise LaunchError(f"{name}: got a tensor on {tensor.device}, expected one on the CPU")
    if tensor.dtype != getattr(torch, declared.dtype):
        raise LaunchError(f"{name}: got {tensor.dtype}, expected torch.{declared.dtype}")
    if tensor.dim() != len(declared.shape):
        raise LaunchError(f"{name}: got {tensor.dim()} dimensions, expected {len(declared.shape)}")


def _check_strides(name: str, tensor: torch.Tensor, declared: Tensor) -> None:
    if declared.layout == "contiguous":
        if not tensor.is_contiguous():
            raise LaunchError(f"{name}: got strides {tensor.stride()}, expected a contiguous tensor")
        return
    if tensor.numel() == 0:
        return
    rows, cols = tensor.shape[-2:]
    row, col = tensor.stride()[-2:]
    packed = all(
        tensor.shape[axis] == 1 or tensor.stride(axis) == tensor.stride(axis + 1) * tensor.shape[axis + 1]
        for axis in range(tensor.dim() - 2)
    )
    if (cols > 1 and col != 1) or (rows > 1 and row < cols) or not packed:
        raise LaunchError(
            f"{name}: got strides {tensor.stride()}, expected rows that are contiguous in themselves"
        )
