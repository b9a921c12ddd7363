"""torch's private interfaces that the sandbox uses: active modes, and tensors as they are.

Names are taken from torch when this module is imported, before the code of any candidate.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from pipeline.records.library_internals import internal

if TYPE_CHECKING:
    from torch.utils import _python_dispatch

    TorchDispatchMode = _python_dispatch.TorchDispatchMode
else:
    TorchDispatchMode = internal("torch.utils._python_dispatch:TorchDispatchMode")

dispatch_modes: Callable[[], int] = internal("torch._C:_len_torch_dispatch_stack")
"""Number of active `TorchDispatchMode`s."""
function_modes: Callable[[], int] = internal("torch._C:_len_torch_function_stack")
"""Number of active `TorchFunctionMode`s."""

TensorBase: Any = internal("torch._C:TensorBase", lambda: torch.Tensor)
"""The class whose methods no subclass of `torch.Tensor` overrides."""
StorageBase: Any = internal("torch._C:StorageBase", lambda: torch.UntypedStorage)
without_torch_function: Any = internal("torch._C:DisableTorchFunction")
"""Context: no `__torch_function__` is called."""
without_torch_dispatch: Any = internal("torch._C:_DisableTorchDispatch")
"""Context: no `__torch_dispatch__` is called."""
