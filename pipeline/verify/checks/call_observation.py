"""The record of one call of a candidate: everything that a check may look at."""

from collections.abc import Callable, Mapping
from typing import Literal

import torch

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.verify.harness.buffers import Arena, Layout, Patterns
from pipeline.verify.harness.kernel_cases import PreparedCase
from pipeline.verify.harness.messages import Observed, OutputState

CallKind = Literal["first", "again", "elsewhere", "protected", "fenced", "watched"]
"""`again`: equal inputs and addresses, other poison; `elsewhere`: after other work, other addresses;
`protected`: inputs cannot be written; `fenced`: the pages behind every tensor cannot be touched;
`watched`: a build that finds data races."""


CALL_KINDS: Mapping[CallKind, str] = {
    "first": "",
    "again": ", second call",
    "elsewhere": ", later call",
    "protected": ", call with read-only inputs",
    "fenced": ", call with tensors that end where memory does",
    "watched": ", instrumented build",
}
"""How a reason names a turn."""


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
    observed: Observed
    accesses_seen: bool = False
    """Whether an interpreter or emulator looked at every access to memory."""
    uses_torch: tuple[str, ...] = ()
    """Operators of PyTorch that the implementation declares to use."""
    computes_with: tuple[str, ...] = ()
    """Libraries of the host that the backend declares as what executes its sources, such as `numpy`."""
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
