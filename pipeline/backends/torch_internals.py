"""torch's private interfaces that the backends use: tensors, modes, autograd's engine."""

from typing import Any

import torch

from pipeline.records.library_internals import internal

TensorBase: Any = internal("torch._C:TensorBase", lambda: torch.Tensor)
"""The class whose attributes no subclass of `torch.Tensor` overrides."""
without_torch_function: Any = internal("torch._C:DisableTorchFunction")
"""Context: no `__torch_function__` of a subclass or a mode is called."""
with_torch_function: Any = internal("torch._C:_EnableTorchFunction")
"""Context: they are called again, where autograd has suspended them."""
ENGINE = "_engine_run_backward"
"""Name in `torch.autograd` of the function that every backward pass goes through."""
run_backward: Any = internal(f"torch.autograd:{ENGINE}")
