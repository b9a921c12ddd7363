"""What the judge saw after one call of a candidate: all that a check may look at."""

from collections.abc import Callable, Mapping
from typing import Literal

import torch

from pipeline.checks.buffers import Arena, Layout, Patterns
from pipeline.checks.cases import Prepared
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record

Turn = Literal["first", "again", "elsewhere"]
"""`again`: equal inputs and addresses, other poison; `elsewhere`: after other work, other addresses."""


class Seen(Record, frozen=True, kw_only=True):
    """An output tensor as it is in the candidate's process after the call."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    moved: bool
    """Whether it no longer lies where it was given."""


class Observation(Record, frozen=True, kw_only=True, eq=False):
    """One call: what was asked, and what it left in memory."""

    prepared: Prepared
    deterministic: bool
    """Whether the kernel claims equal bits on equal inputs."""
    turn: Turn
    arena: Arena
    layout: Layout
    patterns: Patterns
    seen: tuple[Seen, ...]
    outputs: dict[str, torch.Tensor]
    """Contiguous copies, taken when the candidate had answered."""
    first: Mapping[str, torch.Tensor] | None = None
    """Outputs of the first call on equal inputs, in a later turn."""

    def fail(self, outcome: Outcome, reason: str) -> Failure:
        """A failure whose reason says on which inputs and in which call."""
        call = {"first": "", "again": ", second call", "elsewhere": ", later call"}[self.turn]
        return Failure(outcome=outcome, reason=f"{reason} ({self.prepared.case.label}{call})")


class Passed(Record, frozen=True, kw_only=True):
    """The check ran and the call is right."""

    share: float = 0.0
    """Largest error as a share of its bound, where the check measures one."""
    error: float = 0.0
    """Largest absolute error, where the check measures one."""


class NotApplicable(Record, frozen=True):
    """The check has nothing to look at in this call."""


Judgement = Passed | NotApplicable | Failure
Check = Callable[[Observation], Judgement]
