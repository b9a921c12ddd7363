"""Finds operators of PyTorch that a dispatch mode does not see: in native threads, or hidden from it.

In: the beginning and end of a call. Out: operators that PyTorch's own profiler saw in any thread, without
those that were seen anyway. The profiler knows names and shapes only, so it comes second.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import torch

from pipeline.verify.harness.messages import TorchOperation
from pipeline.verify.oracle.computing_operators import is_computing
from pipeline.verify.torch_internals import (
    ExperimentalConfig,
    ProfilerActivity,
    ProfilerConfig,
    ProfilerState,
    disable_profiler,
    enable_profiler,
    prepare_profiler,
)

_ACTIVITIES = {ProfilerActivity.CPU}
_PYTORCHS = "aten::"
_first_mark, _last_mark = partial(torch.eye, 1), partial(torch.scalar_tensor, 0)
_MARKS = {"aten::eye", "aten::scalar_tensor"}


class OperatorProfile:
    """PyTorch's profiler around one call after the other."""

    def __init__(self) -> None:
        # Its library would print two lines for each call, and reads how much to print from the environment.
        os.environ["KINETO_LOG_LEVEL"] = "99"
        self._running = False
        with _silenced():  # it complains once that this is not the thread that imported PyTorch
            self.begin()
            self.end()  # its threads exist from now on, and are not the candidate's

    def begin(self) -> None:
        """Start."""
        if self._running:  # the last call raised
            self.end()
        configuration = ProfilerConfig(
            ProfilerState.KINETO, True, False, False, False, False,
            ExperimentalConfig(profile_all_threads=True),
        )  # fmt: skip
        prepare_profiler(configuration, _ACTIVITIES)
        enable_profiler(configuration, _ACTIVITIES)
        self._running = True
        _first_mark()

    def end(self) -> tuple[Any, ...] | None:
        """Stop: what ran; None if it was stopped already."""
        self._running = False
        _last_mark()
        events = tuple(disable_profiler().events())
        # Where all threads are profiled, PyTorch does not tell whether it still runs: our own marks do.
        return events if {event.name() for event in events} >= _MARKS else None


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Inside, what native code writes to stderr is lost."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


@dataclass
class _Node:
    """An operator and those that it called."""

    name: str
    elements: int
    end: int
    inner: list["_Node"] = field(default_factory=list)

    def all(self) -> Iterator["_Node"]:
        yield self
        for each in self.inner:
            yield from each.all()


def unseen(events: Iterable[Any], seen: Mapping[str, int]) -> tuple[TorchOperation, ...]:
    """Operators that compute and were not seen; `seen`: name -> elements of its largest tensor."""
    found: dict[str, list[int]] = {}
    for node in _outermost(_forest(events)):
        if not is_computing(node.name) or any(
            each.elements <= seen.get(each.name, -1) for each in node.all()
        ):
            continue
        for each in node.all():
            if each.name.startswith(_PYTORCHS) and is_computing(each.name):
                found.setdefault(each.name, []).append(each.elements)
    return tuple(
        TorchOperation(name=name, count=len(sizes), elements=max(sizes), from_own=False, is_output=False)
        for name, sizes in found.items()
    )


def _outermost(nodes: Iterable[_Node]) -> Iterator[_Node]:
    """PyTorch's operators that were called by none; what libraries and scripts call is looked at itself."""
    for node in nodes:
        if node.name.startswith(_PYTORCHS):
            yield node
        else:
            yield from _outermost(node.inner)


def _forest(events: Iterable[Any]) -> list[_Node]:
    """Events by thread, nested by time."""
    roots: list[_Node] = []
    open_nodes: dict[int, list[_Node]] = {}
    for event in sorted(events, key=lambda each: (each.start_ns(), -each.duration_ns())):
        sizes = [prod(shape) for shape in event.shapes() if shape]
        node = _Node(event.name(), max(sizes, default=0), event.start_ns() + event.duration_ns())
        stack = open_nodes.setdefault(event.start_thread_id(), [])
        while stack and stack[-1].end <= event.start_ns():
            stack.pop()
        (stack[-1].inner if stack else roots).append(node)
        stack.append(node)
    return roots
