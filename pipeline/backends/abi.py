"""The C ABI of a kernel's entry: which arguments a call passes, in which order, and whether tensors fit them.

In: a problem, then the tensors of a call. Out: types, names and numbers. Tensors are pointers, inputs in
declared order and then outputs; dimensions and scalars come in declared order (int64_t, double); row strides,
in elements, are those of the `row_strided` tensors (int64_t), between the two.
"""

import ctypes
from typing import Literal

import torch

from pipeline.backends.backend import LaunchError
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem

TorchDevice = Literal["cpu", "cuda"]
_PLACES = {"cpu": "the CPU", "cuda": "the GPU"}


class Abi:
    """Equal layouts are checked once, as the checks would outweigh a small kernel; no pointer is kept."""

    def __init__(self, problem: Problem, *, device: TorchDevice) -> None:
        self.names = (*problem.names("input"), *problem.names("output"))
        strided = [name for name in self.names if problem.tensors[name].layout == "row_strided"]
        integers = len(problem.dimensions) + len(strided)
        self.types: list[type[ctypes.c_void_p] | type[ctypes.c_int64] | type[ctypes.c_double]] = [
            *[ctypes.c_void_p] * len(self.names),
            *[ctypes.c_int64] * integers,
            *[ctypes.c_double] * len(problem.scalars),
        ]
        self.dimensions: dict[str, int] = {}
        """Of the last call."""
        self._problem = problem
        self._device: TorchDevice = device
        self._strided = strided
        self._where = torch.Tensor.get_device if device == "cuda" else _is_on_host
        self._layout: tuple[object, ...] = ()
        self._numbers: tuple[float, ...] = ()

    def numbers(self, tensors: dict[str, torch.Tensor]) -> tuple[float, ...]:
        """All arguments behind the pointers: dimensions, row strides, scalars.

        Raises
        ------
        LaunchError
            A tensor does not fit; the text says what was got and what expected.
        """
        arguments = [tensors[name] for name in self.names]
        layout = tuple([(item.shape, item.stride(), item.dtype, self._where(item)) for item in arguments])
        if layout != self._layout:
            self._numbers = self._check(tensors)
            self._layout = layout
        return self._numbers

    def values(self, tensors: dict[str, torch.Tensor]) -> tuple[float, ...]:
        """All arguments: addresses, then numbers."""
        numbers = self.numbers(tensors)
        return (*[tensors[name].data_ptr() for name in self.names], *numbers)

    def _check(self, tensors: dict[str, torch.Tensor]) -> tuple[float, ...]:
        dimensions: dict[str, int] = {}
        for name in self.names:
            declared = self._problem.tensors[name]
            tensor = tensors[name]
            _check_type(name, tensor, declared, self._device)
            for axis, size in zip(declared.shape, tensor.shape, strict=True):
                named = axis in self._problem.dimensions
                if named and dimensions.setdefault(axis, size) != size:
                    raise LaunchError(f"{name}: got {axis} = {size}, expected {dimensions[axis]} as before")
            _check_strides(name, tensor, declared)
        self.dimensions = self._problem.dimensions | dimensions
        self._check_formulas(tensors)
        return (
            *(self.dimensions[axis] for axis in self._problem.dimensions),
            *(tensors[name].stride(-2) for name in self._strided),
            *self._problem.scalars.values(),
        )

    def _check_formulas(self, tensors: dict[str, torch.Tensor]) -> None:
        """Axes that are formulas, once all dimensions are known."""
        problem = self._problem.with_dimensions(self.dimensions)
        for name in self.names:
            expected, got = problem.shape(name), tuple(tensors[name].shape)
            if got != expected:
                raise LaunchError(f"{name}: got shape {list(got)}, expected {list(expected)}")


def _is_on_host(tensor: torch.Tensor) -> bool:
    return tensor.is_cpu


def _check_type(name: str, tensor: torch.Tensor, declared: Tensor, device: TorchDevice) -> None:
    if tensor.device.type != device:
        raise LaunchError(f"{name}: got a tensor on {tensor.device}, expected one on {_PLACES[device]}")
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
