"""The record of one call of a candidate: everything that a check may look at."""

from collections.abc import Callable, Mapping
from typing import Literal

import torch

from pipeline.backends.backend import MemoryFault
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.verify.harness.buffers import Arena, Layout, Patterns
from pipeline.verify.harness.kernel_cases import PreparedCase

CallKind = Literal["first", "again", "elsewhere", "protected", "fenced"]
"""`again`: equal inputs and addresses, other poison; `elsewhere`: after other work, other addresses;
`protected`: inputs cannot be written; `fenced`: the pages behind every tensor cannot be touched."""


CALL_KINDS: Mapping[CallKind, str] = {
    "first": "",
    "again": ", second call",
    "elsewhere": ", later call",
    "protected": ", call with read-only inputs",
    "fenced": ", call with tensors that end where memory does",
}
"""How a reason names a turn."""


class OutputState(Record, frozen=True, kw_only=True):
    """An output tensor as it is in the candidate's process after the call."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    moved: bool
    """Whether its address has changed."""
    changed_later: bool = False
    """Whether it changed on the device after the call had returned."""


class CallProcessState(Record, frozen=True, kw_only=True):
    """What was noticed in the candidate's process during one call."""

    launches: int | None
    """Kernels that were launched; None where the backend has no launches to count."""
    operations: tuple[str, ...] = ()
    """Operators of PyTorch that computed: `aten::softmax`."""
    tampering: tuple[str, ...] | None = None
    """What was changed outside of the candidate, one line each; None if it was not compared."""
    threads: int = 0
    """Threads that run now and did not before it was loaded, those of a thread pool left out."""
    children: int = 0
    """The same for processes."""
    memory_faults: tuple[MemoryFault, ...] = ()
    """What an interpreter or emulator saw."""


class CallObservation(Record, frozen=True, kw_only=True, eq=False):
    """One call: its inputs, and what it left in memory."""

    prepared: PreparedCase
    deterministic: bool
    """Whether the kernel claims equal bits on equal inputs."""
    turn: CallKind
    arena: Arena
    layout: Layout
    patterns: Patterns
    seen: tuple[OutputState, ...]
    outputs: dict[str, torch.Tensor]
    """Contiguous copies, taken when the candidate had answered."""
    first: Mapping[str, torch.Tensor] | None = None
    """Outputs of the first call on equal inputs, in a later turn."""
    noticed: CallProcessState
    uses_torch: tuple[str, ...] = ()
    """Operators of PyTorch that the implementation declares to use."""
    later: Mapping[str, torch.Tensor] | None = None
    """The outputs as they were some time after the call had returned; None without a second look."""

    def fail(self, outcome: Outcome, reason: str) -> Failure:
        """A failure whose reason says on which inputs and in which call."""
        return Failure(
            outcome=outcome, reason=f"{reason} ({self.prepared.case.label}{CALL_KINDS[self.turn]})"
        )


class Passed(Record, frozen=True, kw_only=True):
    """The check ran and the call is right."""

    share: float = 0.0
    """Largest error as a share of its bound, where the check measures one."""
    error: float = 0.0
    """Largest absolute error, where the check measures one."""
    differing: int = 0
    """Elements that differ bitwise from an earlier call on equal inputs, where the check compares them."""
    compared: int = 0
    """Elements that it compared so."""


class NotApplicable(Record, frozen=True):
    """The check has nothing to look at in this call."""


Judgement = Passed | NotApplicable | Failure
Check = Callable[[CallObservation], Judgement]
