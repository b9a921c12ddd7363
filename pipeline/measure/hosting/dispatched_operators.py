"""Counts what the operators that a model dispatches do. In: calls of it. Out: DispatchedWork.

The least traffic is that of one fused kernel: each element of inputs and weights that any operator uses is
read once, outputs are written once, and what lies between stays in registers. Operators that select
(embedding, gather, indexing) read no more elements than they return. Views and factories read nothing.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from pipeline.measure.hosting.measuring_messages import DispatchedWork
from pipeline.measure.hosting.model_hosting import tensors_of
from pipeline.sandbox.torch_internals import TorchDispatchMode

SELECTING = frozenset(
    {"embedding", "gather", "index", "index_select", "take", "take_along_dim", "masked_select"}
)
MOVING = frozenset(
    {
        *SELECTING,
        *(
            "copy_",
            "clone",
            "_to_copy",
            "cat",
            "stack",
            "constant_pad_nd",
            "scatter",
            "index_put",
            "index_put_",
        ),
        *(
            "fill_",
            "zero_",
            "zeros",
            "ones",
            "full",
            "empty",
            "arange",
            "zeros_like",
            "ones_like",
            "full_like",
        ),
        *(
            "empty_like",
            "new_zeros",
            "new_empty",
            "new_full",
            "repeat",
            "roll",
            "flip",
            "detach",
            "lift_fresh",
        ),
        *(
            "contiguous",
            "_unsafe_view",
            "empty_strided",
            "new_empty_strided",
            "tril",
            "triu",
            "scalar_tensor",
        ),
    }
)
"""They move elements or make them, and compute nothing."""


class OperatorWork(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator with its tensors; `leaves` are the inputs and the weights."""

    def __init__(self, leaves: Iterable[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.matrix: Counter[str] = Counter()
        self.vector: Counter[str] = Counter()
        """Operations by dtype."""
        self._leaves = {_storage(each): each.untyped_storage().nbytes() for each in leaves if each.numel()}
        self._read: dict[int, dict[tuple[Any, ...], int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise PyTorch imports its compiler, about a second, to switch it off in the method below."""
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        result = function(*args, **(kwargs or {}))
        if not function.is_view:
            self._count(function, args, kwargs or {}, result)
        return result

    @property
    def read(self) -> float:
        """Bytes of the leaves that were used, none more than once."""
        return float(sum(min(self._leaves[leaf], sum(used.values())) for leaf, used in self._read.items()))

    def _count(self, function: Any, args: Any, keywords: dict[str, Any], result: Any) -> None:
        given, made = tensors_of([*args, keywords]), tensors_of(result)
        packet = function.overloadpacket
        name = packet.__name__
        for tensor in given:
            self._use(tensor, sum(each.numel() for each in made) if name in SELECTING else math.inf)
        formula: Callable[..., int] | None = flop_registry.get(packet)
        if formula is not None:
            self.matrix[_dtype(given)] += formula(*args, **keywords, out_val=result)
        elif name not in MOVING and made:
            self.vector[_dtype(given or made)] += max(each.numel() for each in (*given, *made))

    def _use(self, tensor: torch.Tensor, most: float) -> None:
        storage = _storage(tensor)
        if storage not in self._leaves:
            return
        view = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
        used = self._read.setdefault(storage, {})
        used[view] = max(used.get(view, 0), int(min(distinct(tensor), most)) * tensor.element_size())


def dispatched_work(
    call: Callable[[], Any], leaves: list[torch.Tensor], renew: Callable[[], None]
) -> DispatchedWork:
    """Of one call; `renew` gives the leaves other content for a second one."""
    mode = OperatorWork(leaves)
    with mode:
        first = tensors_of(call())
    own = {_storage(each) for each in leaves}
    written = [each for each in first if _storage(each) not in own]  # a view of an input writes nothing
    kept = [each.detach().clone() for each in written]
    renew()
    second = [each for each in tensors_of(call()) if _storage(each) not in own]
    operations = mode.matrix + mode.vector
    return DispatchedWork(
        matrix_flops=float(mode.matrix.total()),
        vector_flops=float(mode.vector.total()),
        read=mode.read,
        written=float(sum(distinct(each) * each.element_size() for each in written)),
        changed=float(sum(_changed(a, b) for a, b in zip(kept, second, strict=False))),
        dtype=operations.most_common(1)[0][0] if operations else _dtype(first),
    )


def distinct(tensor: torch.Tensor) -> int:
    """Elements without those that an expanded dimension repeats."""
    return math.prod(
        size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or size == 0
    )


def _changed(first: torch.Tensor, second: torch.Tensor) -> int:
    """Bytes of the elements that differ; none of an expanded tensor, which need not be written as such."""
    if first.shape != second.shape or distinct(second) < second.numel():
        return 0
    return int((first != second).sum()) * first.element_size()


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _dtype(tensors: Iterable[torch.Tensor]) -> str:
    """Of the largest tensor of numbers; float32 where there is none."""
    found = [each for each in tensors if each.is_floating_point()]
    if not found:
        return "float32"
    return str(max(found, key=lambda each: each.numel()).dtype).removeprefix("torch.")
