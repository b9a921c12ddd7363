"""Runs in the candidate's process and records what happens during a call, apart from the outputs.

In: calls, one after the other. Out: for each a `CallProcessState`: launches, operators of PyTorch that
computed, changed functions and settings, threads and processes that are left.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.backends.backend import MemoryFault
from pipeline.sandbox.observation.module_copy import module_copy
from pipeline.verify.checks.call_observation import CallProcessState
from pipeline.verify.harness.thread_pools import fill_pools
from pipeline.verify.oracle.computing_operators import is_computing
from pipeline.verify.torch_internals import Operator, TorchDispatchMode, operator_name


class Observer:
    """Made before the candidate's code is loaded."""

    def __init__(self, launches: Callable[[], int] | None, *, threads: int) -> None:
        self._launches = launches
        fill_pools(threads, interpreted=launches is not None)
        self._surroundings = module_copy("pipeline.sandbox.observation.process_state")
        self._processes = module_copy("pipeline.sandbox.observation.background_activity")
        self._before = self._surroundings.snapshot()
        self._running = self._processes.running()
        self._operations: list[str] = []
        self._launched = 0

    @contextmanager
    def call(self) -> Iterator[None]:
        """Inside, the candidate runs."""
        before = 0 if self._launches is None else self._launches()
        recorder = _Recorder()
        with recorder:
            yield
        self._operations = recorder.operations
        self._launched = 0 if self._launches is None else self._launches() - before

    def noticed(
        self, *, inspect: bool, native: bool, faults: tuple[MemoryFault, ...] = ()
    ) -> CallProcessState:
        """About the last call; `native`: threads of the system count as well as Python's."""
        left = self._processes.left_running(self._running)
        return CallProcessState(
            launches=None if self._launches is None else self._launched,
            operations=tuple(dict.fromkeys(self._operations)),
            tampering=self._tampering() if inspect else None,
            threads=max(left.threads, left.native) if native else left.threads,
            children=left.children,
            memory_faults=faults,
        )

    def _tampering(self) -> tuple[str, ...]:
        settings = self._surroundings.changed_settings(self._before)
        return (*self._surroundings.changes(self._before), *(f"{name} was changed" for name in settings))


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Names of the operators that compute, wherever they are called from in this thread."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[str] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise PyTorch imports its compiler, about a second, to switch it off in the method below."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        name = operator_name(function) if isinstance(function, Operator) else str(function)
        if is_computing(name):
            self.operations.append(name)
        return function(*arguments, **(keywords or {}))
