"""torch's private interfaces that verification uses: to see every operator, and tensors as they are.

Names are taken from torch when this module is imported, before the code of any candidate.
"""

import sys
from typing import Any

import torch

from pipeline.records.library_internals import internal, lookup

no_torch_function: Any = internal("torch._C:_disabled_torch_function_impl")
"""Value of `__torch_function__` for a subclass that has none."""
Operator: Any = internal("torch._ops:OpOverload", lambda: type(torch.ops.aten.add.Tensor))
"""Class of the operators that a dispatch mode sees."""

DispatchKey: Any = internal("torch._C:DispatchKey")
has_kernel: Any = internal("torch._C:_dispatch_has_kernel_for_dispatch_key")
"""(operator's name, name of a dispatch key) -> whether a kernel is registered."""

ProfilerActivity: Any = torch.profiler.ProfilerActivity
ProfilerConfig: Any = internal("torch._C._profiler:ProfilerConfig")
ProfilerState: Any = internal("torch._C._profiler:ProfilerState")
ExperimentalConfig: Any = internal("torch._C._profiler:_ExperimentalConfig")
prepare_profiler: Any = internal("torch._C._autograd:_prepare_profiler")
enable_profiler: Any = internal("torch._C._autograd:_enable_profiler")
disable_profiler: Any = internal("torch._C._autograd:_disable_profiler")

ENGINE = "_engine_run_backward"
"""Name in `torch.autograd` of the function that every backward pass goes through."""
run_backward: Any = internal(f"torch.autograd:{ENGINE}")
without_dispatch: Any = internal("torch._C:_DisableTorchDispatch")
"""Context in which an operator works on a wrapper itself: `transpose_` changes its shape."""
make_wrapper_subclass: Any = internal("torch:Tensor._make_wrapper_subclass")
"""Makes a tensor of a subclass without memory of its own."""


def schema_of(operator: Any) -> Any:
    """The schema of an operator: its name, its arguments and whether it changes them."""
    return operator._schema


def operator_name(operator: Any) -> str:
    """`aten::add` of any overload."""
    return str(operator.name()).partition(".")[0]


def redispatch(operator: Any, key: str, arguments: Any, keywords: Any) -> Any:
    """Call an operator's kernel for a dispatch key."""
    return operator._op_dk(getattr(DispatchKey, key), *arguments, **keywords)


def device_context() -> Any:
    """Class behind `with torch.device(...)` and `torch.set_default_device`."""
    return internal("torch.utils._device:DeviceContext")


def decompositions() -> dict[Any, Any]:
    """Operator -> the same in simpler operators; torch's table for export if the complete one is gone."""
    return dict(internal("torch._decomp:decomposition_table", torch.export.default_decompositions))


def answer_about_triton(answer: Any) -> None:
    """Replace what PyTorch's compiler, and packages, ask whether Triton works with the device."""
    known = lookup("torch.utils._triton:has_triton")
    if known is not None:
        setattr(sys.modules[known.__module__], known.__name__, answer)


def provide_raw_stream(current: Any) -> None:
    """Answer compiled code, and packages, which ask for the stream: with or without CUDA in this build."""
    torch._C._cuda_getCurrentRawStream = current


def import_compiler() -> None:
    """Import what an active dispatch mode would import in each child, which takes 2.5 s."""
    internal("torch:_dynamo", lambda: None)
