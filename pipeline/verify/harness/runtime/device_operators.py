"""Operators that a candidate registers for CUDA, in a process whose tensors only appear to be there.

In: `torch.library` registrations. Out: operators of other libraries run their CUDA kernels on the host's
tensors; kernels that replace PyTorch's own are in `REPLACED`, for the mode that sees the operators of the
candidate. Those of the harness stay as they are.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

PYTORCHS = frozenset(
    {"aten", "prims", "prim", "profiler", "inductor", "quantized", "mkldnn", "mkl", "static_runtime"}
)
"""Namespaces of operators that are PyTorch's."""
REPLACED: dict[str, Callable[..., Any]] = {}
"""Full name of an operator of PyTorch's (`aten::add.Tensor`) -> the kernel that was registered for CUDA."""
_DEVICE, _HOST = "CUDA", "CPU"


def stand_in_for_registration() -> None:
    """Let registrations for CUDA take effect; called once, before the candidate is imported."""
    library: Any = torch.library.Library
    implement, destroy = library.impl, getattr(library, "_destroy", None)
    for_device: set[str] = set()

    @functools.wraps(implement)
    def implemented(self: Any, operator: Any, kernel: Any, dispatch_key: str = "", **options: Any) -> Any:
        key = dispatch_key or self.dispatch_key
        name = operator if isinstance(operator, str) else operator.name()
        name = f"{self.ns}::{name.rpartition('::')[2]}"
        if key == _DEVICE and self.ns in PYTORCHS:
            REPLACED[name] = kernel
            vars(self).setdefault("_replaced", []).append(name)
            return None
        if key == _HOST and name in for_device:
            return None  # as on the device, where the kernel for CUDA is called
        if key == _DEVICE:
            for_device.add(name)
            key = _HOST
        return implement(self, operator, kernel, key, **options)

    library.impl = implemented
    if destroy is None:
        return

    def destroyed(self: Any) -> None:
        for name in vars(self).get("_replaced", ()):
            REPLACED.pop(name, None)
        destroy(self)

    library._destroy = destroyed
