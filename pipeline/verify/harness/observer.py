"""Starts and reads all observers of a candidate's process, by either convention.

In: where the candidate's code is, what it is written in, and its calls. Out: `Observed` of each call, made
from the launches of its own kernels, operators of PyTorch, its surroundings, threads, processes and memory.
"""

import _thread
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from pipeline.backends.backend import Backend
from pipeline.sandbox.observation import tensor_access
from pipeline.sandbox.observation.background_activity import BackgroundActivity
from pipeline.sandbox.observation.module_copy import module_copy
from pipeline.verify.harness.messages import Observed, TorchOperation
from pipeline.verify.harness.observers import native_code
from pipeline.verify.harness.observers.allocations import GuardedAllocations
from pipeline.verify.harness.observers.data_flow import DataFlow
from pipeline.verify.harness.observers.file_access import FileAccess
from pipeline.verify.harness.observers.host_arrays import watch_arrays
from pipeline.verify.harness.observers.kernel_launches import (
    Kind,
    LaunchLog,
    watch_device,
    watch_interpreter,
)
from pipeline.verify.harness.observers.native_calls import watch_ctypes, watch_extensions
from pipeline.verify.harness.observers.profiler import OperatorProfile, unseen
from pipeline.verify.harness.observers.symbol_lookups import SymbolLookups
from pipeline.verify.harness.observers.torch_operators import OperatorWatch, TorchOperators

TritonRuns = Literal["interpreted", "compiled", "absent"]
"""How kernels in Triton run in this process; absent: no candidate here has any."""

_initial_seed = torch.initial_seed
_manual_seed = torch.manual_seed
_manual_seed_of_host = torch.default_generator.manual_seed
_is_cuda_in_use: Callable[[], bool] = torch.cuda.is_initialized


class Observer:
    """Made and installed before the candidate is imported."""

    def __init__(  # noqa: PLR0913  (each of them is a property of one process)
        self,
        source: Path,
        *,
        triton: TritonRuns,
        backends: Sequence[Backend],
        device_context: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
        count_launches: Callable[[], int] | None = None,
        has_driver: bool = False,
    ) -> None:
        """`source`: the candidate's own Python; `backends`: of what it is written in, as far as known.

        `has_driver`: calls reach a device's driver, which starts threads of its own: only Python's count.
        """
        self.allocations = GuardedAllocations()
        self._data_flow = DataFlow()
        self._log = LaunchLog(self._data_flow, self.allocations)
        self._operations = TorchOperators(self._data_flow, self.allocations)
        self._operations.custom = functools.partial(self._log.around, "extension")
        self._device_context = device_context
        self._local = threading.local()
        self._forks: list[str] = []
        self._files = FileAccess(str(source))
        self._symbol_lookups = SymbolLookups()
        self._direct: dict[str, tuple[str, ...]] = {}
        self._profile = OperatorProfile()
        self._backends = backends
        self._count_launches = count_launches
        self._has_driver = has_driver
        self._counted = 0
        self._unfilled = triton == "interpreted"
        self._pool = 0
        self._install(triton)
        self._surroundings = module_copy("pipeline.sandbox.observation.process_state")
        self._processes = module_copy("pipeline.sandbox.observation.background_activity")
        self._before = self._surroundings.snapshot()
        self._running = self._processes.running()
        self._native = frozenset(native_code.mapped())
        self._own: tuple[str, ...] = ()

    def _install(self, triton: TritonRuns) -> None:
        watch_ctypes(self._log, self._data_flow, self._symbol_lookups, self._kind_of)
        watch_extensions(self._log, self._symbol_lookups, self._kind_of)
        watch_threads(self.watching)
        self._files.watch_saving(self._is_watching)
        watch_arrays(
            self._data_flow.computed_on_host,
            lambda tensor: self._is_watching() and self._data_flow.of_the_call(tensor),
        )
        if triton == "interpreted":
            watch_interpreter(self._log, self.aside, self._computing)
        elif triton == "compiled":
            watch_device(self._log)
        sys.addaudithook(self._audit)

    def _kind_of(self, extension: str) -> Kind:
        """Of the kernels in a shared object that the candidate built."""
        emulated = any(each.watch_extension(extension, self._log.spans) for each in self._backends)
        return "cuda" if emulated else "extension"

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, this thread runs code of the candidate."""
        watch = self._operations.watch()
        outer, self._local.watch = getattr(self._local, "watch", None), watch
        try:
            with self._device_context(), watch:
                yield
        finally:
            self._local.watch = outer

    def _is_watching(self) -> bool:
        """Whether this thread runs code of the candidate, not of the harness."""
        watch: OperatorWatch | None = getattr(self._local, "watch", None)
        return watch is not None and not watch.is_aside

    def begin(
        self,
        inputs: Iterable[torch.Tensor],
        *,
        seed: int,
        suppress: bool,
        weights: Iterable[torch.Tensor] = (),
    ) -> None:
        """A call on these inputs begins."""
        given = [tensor for tensor in inputs if tensor_access.numel(tensor)]
        own = [tensor for tensor in weights if tensor_access.numel(tensor)]
        self._data_flow.next_call(
            (tensor_access.region(tensor)[0] for tensor in given),
            (tensor_access.region(tensor)[0] for tensor in own),
        )
        self._log.next_call(given, suppress=suppress)
        self._operations.own.clear()
        self._forks.clear()
        _manual_seed(seed) if _is_cuda_in_use() else _manual_seed_of_host(seed)
        self._seed = seed
        self._counted = self._count_launches() if self._count_launches else 0
        self._profile.begin()

    def end(self, outputs: Sequence[torch.Tensor], *, inspect: bool = True) -> Observed:
        """What was noticed since `begin`; `inspect`: changes of the surroundings too, which takes longer."""
        counted = self._count_launches() - self._counted if self._count_launches else None
        events = self._profile.end()
        left = self._processes.left_running(self._running)
        seeded = ("torch's random state was seeded",) if _initial_seed() != self._seed else ()
        if inspect:
            self._own = tuple(path for path in native_code.mapped() if path not in self._native)
        with tensor_access.plainly():
            operations = self._data_flow.operations(outputs)
        known = {each.name: each.elements for each in operations}
        known |= dict.fromkeys(self._operations.replaced, sys.maxsize)
        for name, elements in self._operations.own.items():
            known[name] = max(elements, known.get(name, 0))
        hidden = unseen(events or (), known)
        stopped = () if events is not None else ("PyTorch's profiler was stopped",)
        return Observed(
            launches=self._log.launches(),
            interpreted=self._log.interpreted(),
            counted=counted,
            operations=(*operations, *hidden, *self._direct_operations(self._own, outputs)),
            native=self._own,
            starts_threads=any(native_code.starts_threads(path) for path in self._own),
            tampering=(
                (*self.tampering(), *seeded, *stopped, *dict.fromkeys(self._forks)) if inspect else None
            ),
            threads=left.threads if self._has_driver else max(left.threads, len(left.native)),
            children=left.children,
            out_of_bounds=self.allocations.trespasses(),
            memory_faults=tuple(fault for each in self._backends for fault in each.take_memory_faults()),
            remarks=tuple(remark for each in self._backends for remark in each.take_remarks()),
        )

    def tampering(self) -> tuple[str, ...]:
        """What was changed outside of the candidate since before it was imported."""
        changed = self._surroundings.changed_settings(self._before)
        settings = (name for name in changed if name not in self._surroundings.HARMLESS)
        changes = self._surroundings.changes(self._before)
        return (*changes, *(f"{name} was changed" for name in settings), *self._files.take())

    def settle_pools(self, threads: int) -> None:
        """Starts the thread pools of libraries, so that they do not count as the candidate's threads."""
        if threads == self._pool and not self._unfilled:
            torch.set_num_threads(threads)
            return
        before = self._processes.running()
        torch.set_num_threads(threads)
        _fill_pools(threads, interpreted=self._unfilled)
        self._pool = threads
        self._unfilled = False  # NumPy's pool stays as it is, PyTorch's follows the number
        known, now = self._running, self._processes.running()
        pools = (known.native & now.native) | (now.native - before.native)
        self._running = BackgroundActivity(threads=known.threads, native=pools, children=known.children)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Inside, in a thread that is watched, the harness itself works."""
        watch: OperatorWatch | None = getattr(self._local, "watch", None)
        with tensor_access.plainly(), watch.aside() if watch else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def _computing(self) -> Iterator[None]:
        """The same for what computes: the profiler sees it, too, so it is noted whose it is."""
        watch: OperatorWatch | None = getattr(self._local, "watch", None)
        with watch.aside() if watch else contextlib.nullcontext():
            yield

    def _direct_operations(
        self, paths: Iterable[str], outputs: Sequence[torch.Tensor]
    ) -> Iterator[TorchOperation]:
        elements = max((tensor_access.numel(tensor) for tensor in outputs), default=0)
        launched = any(each.kind in ("ctypes", "extension", "cuda") for each in self._log.launches())
        for path in paths:
            if path not in self._direct:
                self._direct[path] = native_code.direct_calls(path)
            names = (*self._direct[path], *self._symbol_lookups.found(path))
            for name in names if launched else ():
                yield TorchOperation(name=name, count=1, elements=elements, from_own=False, is_output=False)

    def _audit(self, event: str, arguments: Any) -> None:
        if getattr(self._local, "watch", None) is not None:
            self._files.audit(event, arguments)
        if event in ("os.fork", "os.forkpty"):
            self._forks.append("a process was forked")


_PARALLEL = 1 << 18  # elements that PyTorch shares among threads
_PRODUCT = 512  # rows and columns of a product that NumPy shares among threads


def _fill_pools(threads: int, *, interpreted: bool) -> None:
    """PyTorch's pools and OpenMP's, with so many threads.

    `interpreted`: that of NumPy's linear algebra too, with which Triton's interpreter computes products.
    """
    if threads > 1:
        torch.full((_PARALLEL,), 0.0)
    if interpreted:
        square = np.ones((_PRODUCT, _PRODUCT), np.float32)
        np.matmul(square, square)


def watch_threads(watching: Callable[[], AbstractContextManager[Any]]) -> None:
    """Replace what `threading` starts its threads with."""
    start = _thread.start_new_thread

    @functools.wraps(start)
    def started(function: Callable[..., Any], arguments: Any, keywords: Any = None) -> int:
        @functools.wraps(function)
        def watched(*given: Any, **named: Any) -> None:
            with watching():
                function(*given, **named)

        return start(watched, arguments, keywords or {})

    _thread.start_new_thread = _thread.start_new = started
    threading._start_new_thread = started  # type: ignore[attr-defined]
