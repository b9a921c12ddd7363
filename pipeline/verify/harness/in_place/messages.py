"""Messages between the judge and the process of a declared kernel's variant.

The judge sends a `LoadRequest`, then one `CallRequest` at a time. The process answers `ConfinedReply` and
`ReadyReply`, then `CallReply`, or `RefusedReply` at any time. Expected values are in none of them; outputs
are in shared memory.
"""

from pipeline.backends.backend import CompileJob
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled
from pipeline.verify.checks.call_observation import CallProcessState, OutputState
from pipeline.verify.harness.buffers import Layout


class LoadRequest(Record, frozen=True, kw_only=True):
    """What to load, and where the buffers are."""

    job: CompileJob
    compiled: Compiled
    root: str
    folder: str
    arena: str
    """Path of the shared memory."""
    size: int
    device: DeviceKind
    """Where it runs: the host, if an interpreter or an emulator stands in for the target's device."""
    threads: int
    """The most that any call has."""


class CallRequest(Record, frozen=True, kw_only=True):
    """Launch on these buffers."""

    layout: Layout
    threads: int
    """Of torch, and of kernels that share its OpenMP runtime."""
    inspect: bool = False
    """Whether to compare the surroundings with what they were before the artifact was loaded."""
    disturb: bool = False
    """Whether memory is allocated and filled by others before."""
    protect: bool = False
    """Whether the inputs' memory is read-only during the call."""
    fence: bool = False
    """Whether the memory around all tensors cannot be touched during the call."""
    settle: float = 0.0
    """Seconds after which outputs on a device are looked at a second time; the judge does it on the host."""


class ConfinedReply(Record, frozen=True, kw_only=True, tag="confined"):
    """The process gave up its rights, before any code of the candidate ran."""

    isolation: tuple[str, ...]
    """Mechanisms that are active."""
    process: int
    """Its id."""


class ReadyReply(Record, frozen=True, kw_only=True, tag="ready"):
    """The artifact is loaded."""


class CallReply(Record, frozen=True, kw_only=True, tag="done"):
    """The launch returned and its work is finished."""

    outputs: tuple[OutputState, ...]
    noticed: CallProcessState


class RefusedReply(Record, frozen=True, kw_only=True, tag="refused"):
    """Loading or launching raised."""

    reason: str


Answer = ConfinedReply | ReadyReply | CallReply | RefusedReply
