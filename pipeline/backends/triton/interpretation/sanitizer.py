"""Checks what programs of a launch do to global memory, in Triton's interpreter.

In: every load, store and atomic operation of every program. Out: `MemoryFault`s: accesses outside
of all tensors, and data races between programs.

The interpreter runs one program after the other, so that a race changes no result there. Each cell of a
tensor therefore remembers which programs read and wrote it. Two programs race if both access a cell, at least
one of them changes its bits with an ordinary store, and no atomic operation orders them. Writing the bits
that are there already is no race. Two programs count as ordered if both used atomic operations on the same
tensor, which is less strict than CUDA's memory model and accepts locks, counters and flags of every kind.

Programs run in random order, unless the kernel could wait in a `while` for what an earlier program does. Such
a kernel runs in order until a launch has shown that it uses no atomic operations.

Of different values that threads store in one cell at once, a random one stays.
"""

import bisect
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pipeline.backends.backend import FaultKind, MemoryFault
from pipeline.backends.triton.interpretation.pointer_arguments import Pointer
from pipeline.backends.triton.triton_internals import interpreter

_SEVERAL = -1
_MOST_FAULTS = 4  # of each kind
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_WAITS = 20_000  # times that a program repeats one access of one element: it waits for another program


class WaitsForProgram(RuntimeError):
    """A program waits for another one, which runs after it in the interpreter: needs a device."""


AccessKind = Literal["load", "store", "atomic"]
Accessors = Literal["readers", "writers", "atomics", "lanes", "times"]


_KEPT: tuple[Accessors, ...] = ("readers", "writers", "atomics", "lanes", "times")


@dataclass(eq=False)
class Access:
    """Addresses that a program accesses at once, with the values that it stores there."""

    kind: AccessKind
    addresses: np.ndarray
    itemsize: int
    values: np.ndarray | None = None
    lanes: np.ndarray | None = None
    """Places of the elements in the block that is accessed; equal places are one thread's."""

    def flat(self) -> "Access":
        """In one dimension."""
        addresses, values = self.addresses.reshape(-1), self.values
        if values is not None:
            values = np.broadcast_to(values, self.addresses.shape).reshape(-1)
        return Access(self.kind, addresses, self.itemsize, values, np.arange(addresses.size, dtype=np.int32))

    def where(self, chosen: np.ndarray) -> "Access":
        """Some of the elements."""
        values = None if self.values is None else self.values[chosen]
        lanes = None if self.lanes is None else self.lanes[chosen]
        return Access(self.kind, self.addresses[chosen], self.itemsize, values, lanes)


@dataclass(eq=False)
class Region:
    """A tensor's memory. Program numbers start at 1; 0 is none and -1 several."""

    name: str
    start: int
    end: int
    itemsize: int
    bit: int
    cell: int = 0
    """Bytes of the smallest access so far."""
    readers: np.ndarray | None = None
    writers: np.ndarray | None = None
    atomics: np.ndarray | None = None
    lanes: np.ndarray | None = None
    """Where in its block the last store had each cell."""
    times: np.ndarray | None = None
    """How often the launch had synchronized threads by then."""

    def __post_init__(self) -> None:
        self.cell = self.itemsize

    def cells(self, addresses: np.ndarray, itemsize: int) -> np.ndarray:
        """Numbers of the cells at some addresses."""
        if itemsize < self.cell:
            self._refine(itemsize)
        first: np.ndarray = ((addresses - np.uint64(self.start)) // np.uint64(self.cell)).astype(np.int64)
        if itemsize == self.cell:
            return first
        return (first[:, None] + np.arange(itemsize // self.cell)).reshape(-1)

    def programs(self, kind: Accessors) -> np.ndarray:
        """Of one kind, by cell; made at the first access."""
        found: np.ndarray | None = getattr(self, kind)
        if found is None:
            found = np.zeros(-(-(self.end - self.start) // self.cell), dtype=np.int32)
            setattr(self, kind, found)
        return found

    def mark(self, kind: Accessors, cells: np.ndarray, program: int) -> None:
        """A program is among those of a kind."""
        programs = self.programs(kind)
        before = programs[cells]
        programs[cells] = np.where((before == 0) | (before == program), program, _SEVERAL)

    def _refine(self, itemsize: int) -> None:
        times, self.cell = self.cell // itemsize, itemsize
        count = -(-(self.end - self.start) // itemsize)
        for kind in _KEPT:
            found = getattr(self, kind)
            if found is not None:
                setattr(self, kind, np.repeat(found, times)[:count])


@dataclass(eq=False)
class _Launch:
    kernel: Any
    name: str
    regions: list[Region]
    starts: list[int]
    open: bool = False
    """Whether it makes pointers from numbers, whose tensors are not known."""
    grid: tuple[int, ...] = (1, 1, 1)
    order: np.ndarray | None = None
    begun: int = 0
    program: int = 0
    synchronized: np.ndarray = field(default_factory=lambda: np.zeros(2, dtype=np.int64))
    """By program: the tensors on which it used atomic operations, one bit each."""
    time: int = 1
    """How often threads were synchronized, in all programs together."""
    waiting: tuple[int, int] | None = None
    waits: int = 0

    def program_name(self, number: int) -> str:
        """As the kernel knows it: its place in the grid."""
        place = np.unravel_index(number - 1, self.grid)
        return f"program ({', '.join(str(int(each)) for each in place)})"


class Sanitizer:
    """Of all launches of a process."""

    def __init__(self) -> None:
        self._faults: dict[str, MemoryFault] = {}
        self._launch: _Launch | None = None
        self._without_atomics: set[Any] = set()
        self._generator = np.random.Generator(np.random.PCG64())  # from the system's entropy

    def take(self) -> tuple[MemoryFault, ...]:
        """What was found since the last call of this."""
        found = tuple(self._faults.values())
        self._faults = {}
        return found

    def begin(self, kernel: Any, name: str, tensors: Iterable[tuple[str, int, int, int]]) -> None:
        """A launch begins; of each tensor: name, address, bytes of its storage, bytes of an element."""
        regions: list[Region] = []
        for label, start, size, itemsize in sorted(tensors, key=lambda each: each[1]):
            if not size:
                continue
            if regions and start < regions[-1].end:
                regions[-1].end = max(regions[-1].end, start + size)
                continue
            bit = 1 << (len(regions) % 62)
            regions.append(Region(name=label, start=start, end=start + size, itemsize=itemsize, bit=bit))
        self._launch = _Launch(
            kernel=kernel, name=name, regions=regions, starts=[region.start for region in regions]
        )

    def end(self) -> None:
        """The launch is over."""
        launch, self._launch = self._launch, None
        if launch is not None and not launch.synchronized.any():
            self._without_atomics.add(launch.kernel)

    def set_grid(self, grid: tuple[int, ...]) -> None:
        """How many programs there are along each axis."""
        launch = self._launch
        if launch is None:
            return
        launch.grid = grid
        count = int(np.prod(grid))
        launch.synchronized = np.zeros(count + 1, dtype=np.int64)
        if count > 1 and (launch.kernel in self._without_atomics or not _can_wait(launch.kernel)):
            launch.order = self._generator.permutation(count)

    def next_program(self, place: tuple[int, ...]) -> tuple[int, ...]:
        """The program to run in place of the next one in order."""
        launch = self._launch
        if launch is None:
            return place
        if launch.order is not None:
            number = int(launch.order[launch.begun])
            place = tuple(int(each) for each in np.unravel_index(number, launch.grid))
        launch.begun += 1
        launch.time += 1
        launch.program = int(np.ravel_multi_index(place, launch.grid)) + 1
        launch.waits = 0
        return place

    def synchronizes(self) -> None:
        """The threads of a program wait for each other: a barrier, or an operation that needs one."""
        if self._launch is not None:
            self._launch.time += 1

    def misaligned(self, text: str) -> None:
        """A kernel promises the compiler an alignment that is not there."""
        launch = self._launch
        if launch is not None:
            name = launch.program_name(launch.program)
            self._find("misaligned", f"kernel '{launch.name}', {name}: {text}")

    def makes_pointers(self) -> None:
        """The kernel makes a pointer from a number, or is given one to memory that is no tensor."""
        if self._launch is not None:
            self._launch.open = True

    def allow(self, access: Access, mask: np.ndarray) -> np.ndarray | None:
        """Note an access, masked as given; where it may be done, if not wherever the mask says."""
        launch = self._launch
        if launch is None:
            return None
        shape = access.addresses.shape
        wanted = np.broadcast_to(mask, shape).reshape(-1).astype(bool, copy=False)  # some are whole numbers
        access = access.flat()
        used = access if wanted.all() else access.where(wanted)
        if not used.addresses.size:
            return None
        inside = self._note(launch, used)
        if inside is None or launch.open or bool(inside.all()):
            return None
        self._outside(launch, used.where(~inside))
        allowed = wanted.copy()
        allowed[wanted] = inside
        return allowed.reshape(shape)

    def stored(self, access: Access, mask: np.ndarray) -> None:
        """A store was done; of different values in one cell, any one may be there in the end."""
        if self._launch is None:
            return
        used = access.flat().where(np.broadcast_to(mask, access.addresses.shape).reshape(-1).astype(bool))
        if not used.addresses.size or not bool(_differs(used).any()):
            return
        used = used.where(self._generator.permutation(used.addresses.size))
        everywhere = np.ones(used.addresses.shape, dtype=bool)
        interpreter()._interpreter.store(used.addresses, np.ascontiguousarray(used.values), everywhere)

    def _note(self, launch: _Launch, access: Access) -> np.ndarray | None:
        """Note it in every tensor that it touches; which of its elements are in one, None for all."""
        addresses, itemsize = access.addresses, access.itemsize
        lowest, highest = int(addresses.min()), int(addresses.max())
        if addresses.size == 1 and access.kind != "store":
            self._wait(launch, lowest)
        number = bisect.bisect_right(launch.starts, lowest) - 1
        if number >= 0 and highest + itemsize <= launch.regions[number].end:
            self._enter(launch, launch.regions[number], access)
            return None
        numbers = np.searchsorted(np.array(launch.starts, dtype=np.uint64), addresses, side="right") - 1
        ends = np.array([0, *(region.end for region in launch.regions)], dtype=np.uint64)
        inside: np.ndarray = addresses + np.uint64(itemsize) <= ends[numbers + 1]
        for number in np.unique(numbers[inside]):
            self._enter(launch, launch.regions[number], access.where(inside & (numbers == number)))
        return inside

    def _wait(self, launch: _Launch, address: int) -> None:
        """Raises WaitsForProgram where a program does nothing but look at one element."""
        key = (launch.program, address)
        launch.waits = launch.waits + 1 if launch.waiting == key else 0
        launch.waiting = key
        if launch.waits > _WAITS:
            raise WaitsForProgram(
                f"{launch.program_name(launch.program)} of '{launch.name}' waits for another program, and the"
                " interpreter runs one after the other: needs a device"
            )

    def _enter(self, launch: _Launch, region: Region, access: Access) -> None:
        """Compare an access with those of other programs, and remember it."""
        _NOTED[access.kind](self, launch, region, access)
        if access.kind == "atomic":
            launch.synchronized[launch.program] |= region.bit

    def _loaded(self, launch: _Launch, region: Region, access: Access) -> None:
        me = launch.program
        cells = region.cells(access.addresses, access.itemsize)
        if region.atomics is not None:
            others = region.atomics[cells]
            if bool(((others != 0) & (others != me)).any()):
                launch.synchronized[me] |= region.bit
        self._compare(launch, region, cells, ("reads", ("writers",)))
        self._compare_threads(launch, region, cells, access)
        region.mark("readers", cells, me)

    def _stored(self, launch: _Launch, region: Region, access: Access) -> None:
        assert access.values is not None
        assert access.lanes is not None
        changed = _differs(access)
        if not bool(changed.any()):
            return
        cells = region.cells(access.addresses[changed], access.itemsize)
        if region.atomics is not None and int(launch.synchronized[launch.program]) & region.bit:
            cells = cells[region.atomics[cells] == 0]  # a lock that is let go, a counter that begins anew
        self._compare(launch, region, cells, ("writes", ("writers", "readers", "atomics")))
        region.programs("writers")[cells] = launch.program
        region.programs("times")[cells] = launch.time
        if len(cells) == np.count_nonzero(changed):
            region.programs("lanes")[cells] = access.lanes[changed]

    def _compare_threads(self, launch: _Launch, region: Region, cells: np.ndarray, access: Access) -> None:
        """What another thread of the program stored is there once the threads have waited for each other."""
        if region.times is None or region.lanes is None or len(cells) != access.addresses.size:
            return
        unsynchronized = (region.times[cells] == launch.time) & (region.lanes[cells] != access.lanes)
        if not unsynchronized.any():
            return
        where = int(np.flatnonzero(unsynchronized)[0])
        element = int(cells[where]) * region.cell // region.itemsize
        self._find(
            "race",
            f"data race in kernel '{launch.name}', {launch.program_name(launch.program)}: a thread reads"
            f" element {element} of {region.name} that another thread stored, and no barrier is between",
        )

    def _updated(self, launch: _Launch, region: Region, access: Access) -> None:
        cells = region.cells(access.addresses, access.itemsize)
        self._compare(launch, region, cells, ("updates", ("writers",)))
        region.mark("atomics", cells, launch.program)

    def _compare(
        self, launch: _Launch, region: Region, cells: np.ndarray, accesses: tuple[str, Sequence[Accessors]]
    ) -> None:
        """Accuse this program and others of a race where nothing orders them."""
        me, (mine, kinds) = launch.program, accesses
        own = int(launch.synchronized[me])
        for kind in kinds:
            known: np.ndarray | None = getattr(region, kind)
            if known is None:
                continue
            others = known[cells]
            foreign = (others != 0) & (others != me)
            if not bool(foreign.any()):
                continue
            theirs_too = launch.synchronized[np.maximum(others, 0)]
            racing = foreign & (np.where(others == _SEVERAL, own, theirs_too & own) == 0)
            if not bool(racing.any()):
                continue
            where = int(np.flatnonzero(racing)[0])
            other = int(others[where])
            element = int(cells[where]) * region.cell // region.itemsize
            who = f"several programs {_VERBS[kind]}"
            if other != _SEVERAL:
                who = f"{launch.program_name(other)} {_VERBS[kind]}s"
            self._find(
                "race",
                f"data race in kernel '{launch.name}': {launch.program_name(me)} {mine} element {element} of"
                f" {region.name}, which {who}, and nothing orders them",
            )

    def _outside(self, launch: _Launch, access: Access) -> None:
        address = int(access.addresses[0])
        near = "no tensor is passed"
        if launch.regions:
            region = min(launch.regions, key=lambda each: max(each.start - address, address - each.end + 1))
            before = address < region.start
            distance = region.start - address if before else address - region.end
            place = f"{distance} bytes before the start" if before else f"{distance} bytes past the end"
            near = f"{place} of {region.name} ({region.end - region.start} bytes)"
        self._find(
            "out_of_bounds",
            f"kernel '{launch.name}', {launch.program_name(launch.program)}: {access.kind} of"
            f" {access.addresses.size} elements outside of all tensors, the first one {near}",
        )

    def _find(self, kind: FaultKind, text: str) -> None:
        if sum(fault.kind == kind for fault in self._faults.values()) < _MOST_FAULTS:
            self._faults[text] = MemoryFault(kind=kind, text=text)


_NOTED: dict[AccessKind, Callable[[Sanitizer, _Launch, Region, Access], None]] = {
    "load": Sanitizer._loaded,
    "store": Sanitizer._stored,
    "atomic": Sanitizer._updated,
}
_VERBS: dict[Accessors, str] = {"readers": "read", "writers": "write", "atomics": "update"}

SANITIZER = Sanitizer()
"""Of this process."""


def install() -> None:
    """Let the interpreter report to `SANITIZER`; called once, by `interpreter.mend`."""
    parts = interpreter()
    builder, executor = parts.InterpreterBuilder, parts.GridExecutor
    for name, made in (
        ("create_masked_load", _loading),
        ("create_masked_store", _storing),
        ("create_atomic_rmw", _updating),
        ("create_atomic_cas", _exchanging),
        ("create_int_to_ptr", _telling(SANITIZER.makes_pointers)),
        ("create_barrier", _telling(SANITIZER.synchronizes)),
        ("create_dot", _telling(SANITIZER.synchronizes)),
        ("create_gather", _telling(SANITIZER.synchronizes)),
    ):
        setattr(builder, name, made(getattr(builder, name)))
    combine = parts.ReduceScanOpInterface.apply  # reductions and scans exchange values between threads
    parts.ReduceScanOpInterface.apply = _telling(SANITIZER.synchronizes)(combine)
    set_dimensions, set_index = builder.set_grid_dim, builder.set_grid_idx

    def dimensions(self: Any, *grid: int) -> None:
        set_dimensions(self, *grid)
        SANITIZER.set_grid(grid)

    def index(self: Any, *place: int) -> None:
        set_index(self, *SANITIZER.next_program(place))

    builder.set_grid_dim, builder.set_grid_idx = dimensions, index
    initialize, run = executor._init_args_hst, executor.__call__

    def initialized(self: Any, arguments: Any, keywords: Any) -> Any:
        found = initialize(self, arguments, keywords)
        given = [*zip(self.arg_names, found[0], strict=False), *found[1].items()]
        SANITIZER.begin(self.fn, self.fn.__name__, _storages(given))
        if any(isinstance(value, Pointer) for _, value in given):
            SANITIZER.makes_pointers()
        return found

    def called(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return run(self, *arguments, **keywords)
        finally:
            SANITIZER.end()

    executor._init_args_hst, executor.__call__ = initialized, called


def _differs(access: Access) -> np.ndarray:
    """Where memory holds other bits than a store's values."""
    assert access.values is not None
    bits = _BITS[access.itemsize]
    everywhere = np.ones(access.addresses.shape, dtype=bool)
    nothing = np.zeros(access.addresses.shape, dtype=bits)
    there = interpreter()._interpreter.load(access.addresses, everywhere, nothing, bits)
    different: np.ndarray = np.ascontiguousarray(access.values).view(bits) != there
    return different


@functools.cache
def _can_wait(kernel: Any) -> bool:
    """Whether a `while` is in the source of a kernel or of a function that it calls."""
    seen: set[Any] = set()
    pending = [kernel]
    while pending:
        function = pending.pop()
        while hasattr(function, "fn"):  # of an autotuner, of heuristics, of Triton's own wrapper
            function = function.fn
        if function in seen:
            continue
        seen.add(function)
        try:
            if "while" in inspect.getsource(function):
                return True
        except (OSError, TypeError):
            return True
        pending += [value for value in _named(function) if hasattr(value, "fn")]
    return False


def _named(function: Any) -> Iterable[Any]:
    """Global values that a function's source names, and attributes of modules among them."""
    names = function.__code__.co_names
    values = [function.__globals__.get(name) for name in names]
    modules = [value for value in values if isinstance(value, types.ModuleType)]
    return [*values, *(getattr(module, name, None) for module in modules for name in names)]


def _storages(given: Sequence[tuple[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Of all tensors in the arguments of a launch."""
    found = []
    for name, value in given:
        if isinstance(value, tuple | list):
            found += _storages([(f"{name}[{number}]", each) for number, each in enumerate(value)])
        elif type(value).__name__ == "TensorDescriptor":
            found += _storages([(name, value.base)])
        elif hasattr(value, "data_ptr"):
            base = getattr(value, "base", value)  # of a tensor seen as another type
            if hasattr(base, "untyped_storage"):
                storage = base.untyped_storage()
                found.append((name, storage.data_ptr(), storage.nbytes(), base.element_size()))
    return found


def _allowed(handle: Any, allowed: np.ndarray | None) -> Any:
    parts = interpreter()
    return handle if allowed is None else parts.TensorHandle(allowed, parts.tl.int1)


def _loading(method: Callable[..., Any]) -> Callable[..., Any]:
    def load(self: Any, pointers: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        itemsize = max(pointers.get_element_ty().primitive_bitwidth // 8, 1)
        allowed = SANITIZER.allow(Access("load", pointers.data, itemsize), mask.data)
        return method(self, pointers, _allowed(mask, allowed), *rest, **named)

    return load


def _storing(method: Callable[..., Any]) -> Callable[..., Any]:
    def store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        access = Access("store", pointers.data, value.data.dtype.itemsize, value.data)
        allowed = SANITIZER.allow(access, mask.data)
        done = method(self, pointers, value, _allowed(mask, allowed), *rest, **named)
        SANITIZER.stored(access, mask.data if allowed is None else allowed)
        return done

    return store


def _updating(method: Callable[..., Any]) -> Callable[..., Any]:
    def update(self: Any, operation: Any, pointer: Any, value: Any, mask: Any, *rest: Any) -> Any:
        allowed = SANITIZER.allow(Access("atomic", pointer.data, value.data.dtype.itemsize), mask.data)
        SANITIZER.synchronizes()
        return method(self, operation, pointer, value, _allowed(mask, allowed), *rest)

    return update


def _exchanging(method: Callable[..., Any]) -> Callable[..., Any]:
    def exchange(self: Any, pointer: Any, expected: Any, value: Any, *rest: Any) -> Any:
        everywhere = np.ones(pointer.data.shape, dtype=bool)
        SANITIZER.allow(Access("atomic", pointer.data, value.data.dtype.itemsize), everywhere)
        SANITIZER.synchronizes()
        return method(self, pointer, expected, value, *rest)

    return exchange


def _telling(tell: Callable[[], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def made(method: Callable[..., Any]) -> Callable[..., Any]:
        def told(self: Any, *arguments: Any, **named: Any) -> Any:
            tell()
            return method(self, *arguments, **named)

        return told

    return made
