"""torch's private interfaces that the sandbox uses: how many modes are active in this thread."""

from collections.abc import Callable

from pipeline.records.library_internals import internal

dispatch_modes: Callable[[], int] = internal("torch._C:_len_torch_dispatch_stack")
"""Number of active `TorchDispatchMode`s."""
function_modes: Callable[[], int] = internal("torch._C:_len_torch_function_stack")
"""Number of active `TorchFunctionMode`s."""
