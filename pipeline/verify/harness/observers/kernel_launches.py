"""Watches launches of the candidate's own kernels: what was in memory before, and what they changed.

In: a launch and its arguments. Out: `Launches` per kernel, and marks on the memory that it wrote. Launches
may be left out, to see whether the result depends on them.
"""

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from pipeline.backends.backend import MemorySpan
from pipeline.records.record import Record
from pipeline.sandbox.observation import tensor_access
from pipeline.verify.harness.messages import InterpretedLaunch, Launches, Reads
from pipeline.verify.harness.observers.allocations import GuardedAllocations
from pipeline.verify.harness.observers.data_flow import DataFlow

Kind = Literal["triton", "extension", "ctypes", "cuda"]
_MOST: tuple[Reads, ...] = ("input", "derived", "weights", "nothing")
_UNSEEN: tuple[Kind, ...] = ("extension", "ctypes", "cuda")
"""What may keep addresses from before, or find them inside of what it is given. That its result depends on
these launches is seen when they are left out."""
_LOWEST_ADDRESS = 1 << 16
_MOST_MEMBERS = 256  # of an array that may hold addresses
_is_cuda_in_use: Callable[[], bool] = torch.cuda.is_initialized
_records_graph: Callable[[], bool] = torch.cuda.is_current_stream_capturing
_MOST_CALLS = 64
_COMPARED = 256 << 20  # bytes of all arguments of a launch that are copied and compared


@dataclass
class _Tally:
    count: int = 0
    computed: int = 0
    reads: Reads = "nothing"


class _Region:
    """Memory that an argument refers to, and what was in it."""

    def __init__(self, start: int, size: int, offsets: Iterable[int] = ()) -> None:
        self.start = start
        self.now = tensor_access.memory(start, size)
        self.before = self.now.copy()
        self.offsets = tuple(offsets)

    @property
    def changed(self) -> bool:
        return not np.array_equal(self.before, self.now)


class _DeviceRegion:
    """The same on a device."""

    def __init__(self, tensor: torch.Tensor, offsets: Iterable[int] = ()) -> None:
        self.offsets = tuple(offsets)
        self.start, _ = tensor_access.region(tensor)
        self._bytes = tensor_access.storage_bytes(tensor)
        self.before = tensor_access.content(self._bytes)

    @property
    def now(self) -> np.ndarray:
        return tensor_access.content(self._bytes)

    @property
    def changed(self) -> bool:
        return not np.array_equal(self.before, self.now)


class LaunchLog:
    """What was launched during one call; used from all threads."""

    def __init__(self, data_flow: DataFlow, allocations: GuardedAllocations) -> None:
        self._data_flow = data_flow
        self._allocations = allocations
        self._lock = threading.RLock()
        self._inside = threading.local()
        self._tallies: dict[tuple[Kind, str], _Tally] = {}
        self._inputs: tuple[torch.Tensor, ...] = ()
        self._results: dict[tuple[str, int], Any] = {}
        self._interpreted: dict[str, InterpretedLaunch] = {}
        self.suppress = False
        """Whether launches are left out."""

    def next_call(self, inputs: Iterable[torch.Tensor], *, suppress: bool) -> None:
        """Begin anew; `inputs`: what the call is given."""
        self._tallies = {}
        self._interpreted = {}
        self._inputs = tuple(inputs)
        self.suppress = suppress

    def launches(self) -> tuple[Launches, ...]:
        """By kernel."""
        return tuple(
            Launches(kind=kind, name=name, count=tally.count, copies=tally.computed == 0, reads=tally.reads)
            for (kind, name), tally in self._tallies.items()
        )

    def spans(self) -> list[MemorySpan]:
        """Memory of tensors on the host that a kernel may access now, each once, as far as it is known."""
        with tensor_access.plainly():
            given = [
                (f"input {number}", *tensor_access.region(tensor), tensor_access.itemsize(tensor), True)
                for number, tensor in enumerate(self._inputs)
            ]
            own = [("a tensor of its own", *each, True) for each in self._allocations.items()]
            others = [("a tensor of its own", *each, 4, False) for each in self._data_flow.spans()]
        found = {
            start: MemorySpan(name=name, start=start, size=size, itemsize=itemsize, guarded=guarded)
            for name, start, size, itemsize, guarded in reversed((*given, *own, *others))
            if size
        }
        return list(found.values())

    def interpreted(self) -> tuple[InterpretedLaunch, ...]:
        """Different launches in the interpreter."""
        return tuple(self._interpreted.values())

    def note_interpreted(self, call: InterpretedLaunch) -> None:
        """A launch in the interpreter begins."""
        if len(self._interpreted) < _MOST_CALLS:
            self._interpreted.setdefault(repr(call), call)

    def launcher(self, run: Callable[[], Any]) -> Any:
        """Run what starts a launch that is known; what it calls itself, the launcher in C, is none."""
        outer, self._inside.launcher = getattr(self._inside, "launcher", False), True
        try:
            return run()
        finally:
            self._inside.launcher = outer

    def around(self, kind: Kind, name: str, arguments: Any, run: Callable[[], Any]) -> Any:
        """Make a launch, or leave it out, and keep what is to be known of it."""
        if getattr(self._inside, "launcher", False):
            return run()
        with self._lock:
            tally = self._tallies.setdefault((kind, name), _Tally())
            tally.count += 1
            number = tally.count
        if self.suppress:
            tally.computed += 1
            return self._stand_in(name, number)
        if _is_cuda_in_use() and _records_graph():  # reading memory would end the recording of a graph
            tally.computed += 1
            tally.reads = "input"
            return run()
        with tensor_access.plainly():
            regions = self._regions(arguments)
            reads = self._data_flow.reads([region.start for region in regions])
            tally.reads = min(tally.reads, reads, key=_MOST.index)
        result = run()
        with tensor_access.plainly():
            results = tuple(tensor_access.tensors_in(result))
            self._results[name, number] = _blank(result)
            computed = self._computed(regions, results, derived=reads in ("input", "derived"))
            if computed is None:
                computed = kind in _UNSEEN
            tally.computed += computed
        return result

    def _regions(self, arguments: Any) -> list[_Region | _DeviceRegion]:
        """Memory that the arguments point to, each once."""
        found: dict[int, int] = {}
        there: dict[int, torch.Tensor] = {}
        offsets: dict[int, set[int]] = {}
        for tensor in tensor_access.tensors_in(arguments):
            if not tensor_access.numel(tensor):
                continue  # what its storage refers to may be memory that cannot be touched
            start, size = tensor_access.region(tensor)
            found[start] = size
            offsets.setdefault(start, set()).add(tensor_access.address(tensor) - start)
            if not tensor_access.on_host(tensor):
                there[start] = tensor
        known = [*self._allocations.spans(), *self._data_flow.spans()]
        elsewhere: dict[int, torch.Tensor] = {}
        for tensor in (*self._inputs, *self._allocations.on_devices()):
            start, size = tensor_access.region(tensor)
            known.append((start, size))
            if not tensor_access.on_host(tensor):
                elsewhere[start] = tensor
        tables = [tensor for tensor in tensor_access.tensors_in(arguments) if _may_hold_addresses(tensor)]
        addresses = (address for table in tables for address in _integers(table))
        for pointer in (*_pointers(arguments), *addresses):
            met = {start: size for start, size in known if start <= pointer < start + size}
            found.update(met)
            there.update({start: elsewhere[start] for start in met if start in elsewhere})
        if sum(found.values()) > _COMPARED:
            return []
        return [
            _DeviceRegion(there[start], offsets.get(start, ()))
            if start in there
            else _Region(start, size, offsets.get(start, ()))
            for start, size in found.items()
            if size
        ]

    def _computed(
        self, regions: Sequence[_Region | _DeviceRegion], results: Sequence[torch.Tensor], *, derived: bool
    ) -> bool | None:
        """Whether it made bits that were not among its arguments; marks what it wrote as its own.

        None where nothing changed that can be seen.
        """
        changed = [region for region in regions if region.changed]
        known = any(self._data_flow.is_own(region.start) for region in regions)
        for region in changed:
            self._data_flow.wrote(region.start, derived=derived)
        new = [tensor for tensor in results if not any(_within(tensor, region) for region in regions)]
        for tensor in new:
            self._data_flow.wrote(tensor_access.region(tensor)[0], derived=derived)
        made: list[tuple[np.ndarray, object]] = [(region.now, region) for region in changed]
        made += [(tensor_access.content(tensor), None) for tensor in new]
        if not made:
            # It may have written again what it had written before, or nothing is known.
            return True if known or not regions else None
        return not all(
            any(_is_copy(content, other) for other in regions if other is not region)
            for content, region in made
        )

    def _stand_in(self, name: str, number: int) -> Any:
        """In place of the result of a launch that was left out: as large, and never written."""
        return _unwritten(self._results.get((name, number)))


def _is_copy(content: np.ndarray, of: _Region | _DeviceRegion) -> bool:
    """Of all of the memory, or of it from where an argument begins."""
    before = of.before
    return np.array_equal(content, before) or any(
        np.array_equal(content, before[offset : offset + content.size]) for offset in of.offsets if offset
    )


class _Blank(Record, frozen=True, kw_only=True):
    """The form of a tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    device: Any


def _blank(value: Any) -> Any:
    if tensor_access.is_plain(value):
        return _Blank(
            shape=tuple(tensor_access.shape(value)),
            strides=tensor_access.strides(value),
            dtype=tensor_access.dtype(value),
            device=tensor_access.device(value),
        )
    if type(value) in (list, tuple):
        return type(value)(_blank(each) for each in value)
    return value if isinstance(value, int | float | str | bool) else None


def _unwritten(value: Any) -> Any:
    if isinstance(value, _Blank):
        return torch.empty_strided(value.shape, value.strides, dtype=value.dtype, device=value.device)
    if type(value) in (list, tuple):
        return type(value)(_unwritten(each) for each in value)
    return value


def _within(tensor: torch.Tensor, region: _Region | _DeviceRegion) -> bool:
    return tensor_access.region(tensor)[0] == region.start


def _pointers(arguments: Any) -> Iterator[int]:
    """Numbers that may be addresses, also in ctypes' objects and NumPy's arrays."""
    for argument in arguments if isinstance(arguments, list | tuple) else (arguments,):
        if isinstance(argument, list | tuple):
            yield from _pointers(argument)
            continue
        yield from _pointers(_members(argument))
        value = _address(argument)
        if isinstance(value, int) and value > _LOWEST_ADDRESS:
            yield value


def _address(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    if isinstance(argument, ctypes._Pointer | ctypes.Array):
        return ctypes.cast(argument, ctypes.c_void_p).value
    if hasattr(argument, "data_ptr") and not isinstance(argument, torch.Tensor):
        return argument.data_ptr()
    return getattr(argument, "value", argument)


def _may_hold_addresses(tensor: torch.Tensor) -> bool:
    """A short vector of 64-bit integers: how kernels are given many tensors at once."""
    return (
        tensor_access.dtype(tensor) == torch.int64
        and len(tensor_access.shape(tensor)) == 1
        and 0 < tensor_access.numel(tensor) <= _MOST_MEMBERS
    )


def _integers(tensor: torch.Tensor) -> list[int]:
    values: list[int] = tensor_access.content(tensor).view(np.int64).tolist()
    return values


def _members(argument: Any) -> list[Any]:
    """What is inside of a structure, of a reference to one, or of an array of pointers."""
    inner = getattr(argument, "_obj", argument)  # what byref() refers to
    if isinstance(inner, ctypes._Pointer) and inner and isinstance(inner.contents, ctypes.Structure):
        inner = inner.contents
    if isinstance(inner, ctypes.Structure):
        return [getattr(inner, name) for name, *_ in getattr(inner, "_fields_", ())]
    if isinstance(inner, ctypes.Array) and len(inner) <= _MOST_MEMBERS:
        return list(inner)
    return []


Aside = Callable[[], AbstractContextManager[None]]
"""Inside, operators of PyTorch are the harness's own."""


def watch_interpreter(log: LaunchLog, aside: Aside, computing: Aside) -> None:
    """Watch launches in Triton's interpreter; `computing`: as `aside`, for operators that compute."""
    from pipeline.backends.triton.interpretation import libdevice
    from pipeline.backends.triton.triton_internals import interpreter_class

    libdevice.special = _aside(libdevice.special, computing)
    launcher = interpreter_class("GridExecutor")
    run = launcher.__call__
    for name in ("_init_args_hst", "_restore_args_dev"):
        setattr(launcher, name, _aside(getattr(launcher, name), aside))

    @functools.wraps(run)
    def launched(executor: Any, *arguments: Any, **keywords: Any) -> Any:
        executor.grid = _grid(executor, arguments, keywords)
        log.note_interpreted(_interpreted_launch(executor, arguments, keywords))
        call = functools.partial(run, executor, *arguments, **keywords)
        return log.around("triton", executor.fn.__name__, (*arguments, *keywords.values()), call)

    launcher.__call__ = launched


def watch_device(log: LaunchLog) -> None:
    """Watch launches of compiled kernels."""
    import triton

    kernel_class = triton.JITFunction
    run = kernel_class.run

    @functools.wraps(run)
    def launched(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        call = functools.partial(run, kernel, *arguments, grid=grid, warmup=warmup, **keywords)
        if warmup:
            return call()
        call = functools.partial(log.launcher, call)
        return log.around("triton", kernel.fn.__name__, (*arguments, *keywords.values()), call)

    kernel_class.run = launched


def _aside(method: Callable[..., Any], aside: Aside) -> Callable[..., Any]:
    @functools.wraps(method)
    def quiet(*arguments: Any, **keywords: Any) -> Any:
        with aside():
            return method(*arguments, **keywords)

    return quiet


class _NotPlain(Exception):
    """An argument that no message can hold."""


def _interpreted_launch(
    executor: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> InterpretedLaunch:
    given = {**dict(zip(executor.arg_names, arguments, strict=False)), **keywords}
    constants = set(executor.constexprs) | set(given).difference(executor.arg_names)
    try:
        with tensor_access.plainly():
            plain = {name: _plain(value, constant=name in constants) for name, value in given.items()}
    except _NotPlain:
        plain = None
    code = executor.fn.__code__
    return InterpretedLaunch(name=executor.fn.__name__, file=Path(code.co_filename).name, arguments=plain)


def _plain(value: Any, *, constant: bool) -> Any:
    """A number that is no constant only decides the binary by its type, and by what divides it."""
    if isinstance(value, torch.Tensor):
        return {"tensor": str(tensor_access.dtype(value)).removeprefix("torch.")}
    value = getattr(value, "value", value)  # of a constant
    if type(value).__module__ == "triton.language.core" and hasattr(value, "name"):
        return {"type": value.name}
    if type(value) not in (bool, int, float, str, type(None)):
        raise _NotPlain
    if not constant and type(value) is float:
        return 0.5
    if not constant and type(value) is int and 1 < value < _LARGE:
        return _SPECIALIZED if value % _SPECIALIZED == 0 else _SPECIALIZED + 1
    return value


_SPECIALIZED, _LARGE = 16, 1 << 31


def _grid(executor: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[int, ...]:
    """Programs along each axis, as plain numbers."""
    grid = executor.grid
    if callable(grid):
        known = {name: value for name, value in keywords.items() if name in executor.arg_names}
        grid = grid(inspect.getcallargs(executor.fn, *arguments, **known))
    sizes = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    return tuple(int(size) for size in sizes)
