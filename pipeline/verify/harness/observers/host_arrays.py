"""Detects what the host computes on a candidate's tensors outside of PyTorch: in NumPy or plain Python.

In: a callback. Out: arrays made from tensors have a class that reports every function that computes on them,
and lists made from tensors are reported. In all else they are NumPy arrays. Arrays that lose the class in
other ways (buffers, pickles, views) are no longer seen.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from pipeline.sandbox.observation import tensor_access

Tell = Callable[[str, int], None]
"""Name of a function, and elements of its largest argument or result."""

_MOVING = {
    "array",
    "array_equal",
    "array_split",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_to",
    "copy",
    "copyto",
    "dsplit",
    "empty_like",
    "expand_dims",
    "full_like",
    "hsplit",
    "may_share_memory",
    "moveaxis",
    "ndim",
    "ones_like",
    "ravel",
    "reshape",
    "result_type",
    "rollaxis",
    "rot90",
    "shape",
    "shares_memory",
    "size",
    "split",
    "squeeze",
    "swapaxes",
    "transpose",
    "vsplit",
    "zeros_like",
    "array_repr",
    "array_str",
    "array2string",
}


class WatchedArray(np.ndarray):
    """An array that came from a tensor."""

    tell: Tell = staticmethod(lambda _name, _elements: None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute as NumPy does, and tell of it."""
        if "out" in keywords:
            keywords["out"] = tuple(_plain(each) for each in keywords["out"])
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(keywords))
        self.tell(f"numpy:{ufunc.__name__}", _elements((inputs, result)))
        return _watched(result)

    def __array_function__(self, function: Any, _types: Any, arguments: Any, keywords: Any) -> Any:
        """The same for functions that are not element by element."""
        result = function(*_plain(arguments), **_plain(keywords))
        name = getattr(function, "__name__", "")
        if name not in _MOVING:
            self.tell(f"numpy:{name}", _elements((arguments, result)))
        return _watched(result)


def watch_arrays(tell: Tell, watching: Callable[[torch.Tensor], bool]) -> None:
    """Arrays and lists that tensors give from now on are watched where `watching` says so of the tensor."""
    WatchedArray.tell = staticmethod(tell)

    def giving(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def given(tensor: torch.Tensor, *arguments: Any, **keywords: Any) -> Any:
            array = method(tensor, *arguments, **keywords)
            return _watched(array) if watching(tensor) else array

        return given

    for name in ("numpy", "__array__"):
        setattr(torch.Tensor, name, giving(getattr(torch.Tensor, name)))
    for name in ("array", "asarray", "ascontiguousarray"):
        setattr(np, name, _keeping(getattr(np, name), watching))
    listed = torch.Tensor.tolist

    @functools.wraps(listed)
    def reported(tensor: torch.Tensor) -> Any:
        # Lists of integers are lengths and offsets that hosts need.
        if watching(tensor) and tensor_access.dtype(tensor).is_floating_point:
            tell("python:tolist", tensor_access.numel(tensor))
        return listed(tensor)

    setattr(torch.Tensor, "tolist", reported)  # noqa: B010  (mypy cannot know that it is one of a base class)


def _keeping(function: Callable[..., Any], watching: Callable[[torch.Tensor], bool]) -> Callable[..., Any]:
    """NumPy's function that makes a plain array of any, which stays watched where it came from a tensor."""

    @functools.wraps(function)
    def kept(*arguments: Any, **keywords: Any) -> Any:
        array = function(*arguments, **keywords)
        first = arguments[0] if arguments else keywords.get("a", keywords.get("object"))
        came = isinstance(first, WatchedArray) or (isinstance(first, torch.Tensor) and watching(first))
        return _watched(array) if came else array

    return kept


def _watched(value: Any) -> Any:
    if type(value) is np.ndarray:
        return value.view(WatchedArray)
    return tuple(map(_watched, value)) if type(value) is tuple else value


def _plain(value: Any) -> Any:
    """The same without the class, also inside of lists, tuples and dictionaries."""
    if isinstance(value, WatchedArray):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {key: _plain(each) for key, each in value.items()}
    return value


def _elements(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    if type(value) in (list, tuple):
        return max(map(_elements, value), default=0)
    return 0
