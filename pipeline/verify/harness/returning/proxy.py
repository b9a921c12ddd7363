"""One candidate's process and memory: constructs and calls it under a condition, and reads what came back.

In: a session, shared memory, cases. Out: what the judge saw of each call (`Seen`), or that it was refused.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from pipeline.records.record import Record
from pipeline.verify.harness.buffers import ALIGNMENT, Arena, Slot, repeat_word
from pipeline.verify.harness.returning.case_set import Case
from pipeline.verify.harness.returning.encoding import PAGE, distinct, place
from pipeline.verify.harness.returning.judgement import Seen
from pipeline.verify.harness.returning.messages import Call, Construct, Done, Ready, Refused, Returned
from pipeline.verify.harness.returning.planning.case_plans import Draft, output_gradients
from pipeline.verify.harness.returning.session import Session

_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}
_GUARD = 0x7FFF  # a NaN that is no pattern of other memory: what was read beyond an input shows in the result
_POISON = 0x7F  # repeated, a NaN in most floating types


class Board(Arena):
    """An arena that knows what it wrote."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._written: dict[str, tuple[Slot, torch.Tensor]] = {}

    def put(self, slots: Iterable[Slot], tensors: Mapping[str, torch.Tensor]) -> None:
        """Write tensors between guard bands, and remember all bytes."""
        self._written = {}
        for slot in slots:
            region = self._region(slot)
            region.fill_(repeat_word(_GUARD, slot.itemsize))
            if slot.span:
                distinct(self.view(slot)).copy_(distinct(tensors[slot.name]))
            self._written[slot.name] = (slot, region.clone())

    def poison(self, offset: int, size: int) -> None:
        """Let nothing of an earlier call be left where outputs will be copied to."""
        torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=offset).fill_(_POISON)

    def changes(self) -> tuple[dict[str, torch.Tensor], str | None]:
        """Tensors that are not what was written, as they are now, and what was written around them."""
        mutated: dict[str, torch.Tensor] = {}
        trespass = None
        for name, (slot, before) in self._written.items():
            changed = self._region(slot) != before
            if not bool(changed.any()):
                continue
            inside = torch.zeros_like(changed)
            if slot.span:
                distinct(inside.as_strided(slot.shape, slot.strides, slot.guard)).fill_(True)
            if bool((changed & inside).any()):
                mutated[name] = self.copy(slot)
            outside = int((changed & ~inside).sum())
            if outside:
                trespass = trespass or f"{name}: {outside} elements around it were written"
        return mutated, trespass

    def read(self, returned: Returned, first: int) -> torch.Tensor | None:
        """A copy of an output that was left at or after a byte offset; None where none can be read."""
        dtype: Any = _DTYPES.get(returned.dtype)
        if dtype is None or returned.offset is None or any(size < 0 for size in returned.shape):
            return None
        count = math.prod(returned.shape)
        if returned.offset < first or returned.offset + count * dtype.itemsize > self.size:
            return None
        if count == 0:
            return torch.empty(returned.shape, dtype=dtype)
        flat = torch.frombuffer(self._memory, dtype=dtype, count=count, offset=returned.offset)
        return flat.clone().view(returned.shape)


SHIFT = 17 * ALIGNMENT  # bytes by which all addresses differ in a call elsewhere
_SLACK = 1 << 16  # bytes of room for outputs that are larger than they should be


class Turn(Record, frozen=True, kw_only=True):
    """How a case is called."""

    shift: int = 0
    """Bytes by which all addresses differ from the usual ones."""
    threads: int = 1
    protected: bool = False
    """Whether the inputs are read-only."""
    fenced: bool = False
    """Whether nothing can be read around the inputs, each of which ends where a page does."""
    same_objects: bool = False
    """Whether it gets the very tensors of the call before that had this, filled with other values."""
    suppress: bool = False
    """Whether the candidate's own kernels are left out."""
    settle: float = 0.0
    """Seconds after which outputs are looked at again."""


class Room(Record, frozen=True, kw_only=True):
    """Where things lie in the shared memory of one candidate: weights, inputs, outputs."""

    inputs: int
    outputs: int
    output_bytes: int

    @property
    def size(self) -> int:
        """Bytes of all."""
        return self.outputs + self.output_bytes


def room_for(drafts: Iterable[Draft], *, gradients: bool) -> Room:
    """Enough for each of the drafts."""
    inputs, sizes, outputs = PAGE, 0, 0
    for draft in drafts:
        inputs = max(inputs, place({**draft.initial.tensors, **draft.state}, 0)[1])
        given = dict(draft.encoded.tensors)
        back = list(draft.values)
        if gradients:
            given |= output_gradients(draft)
            back += [*given.values(), *draft.state.values()]
        sizes = max(sizes, place(given, 0, flush=True)[1], place(given, 0)[1])
        # Twice 8 bytes for each element: what has a wrong type or shape is read as well, and then named.
        outputs = max(outputs, sum(16 * tensor.numel() + ALIGNMENT for tensor in back))
    start = _page(inputs + sizes + SHIFT)
    return Room(inputs=inputs, outputs=start, output_bytes=_page(outputs + _SLACK))


class Attempt:
    """A candidate that is being tried."""

    def __init__(self, session: Session, board: Board, room: Room) -> None:
        self.session = session
        self._board = board
        self._room = room
        self._constructed = ""
        self.state = Ready()
        """How the weights of the present instance were taken over."""

    def call(self, case: Case, turn: Turn) -> Seen | Refused:
        """Call what was constructed for the case; raises Ended where the process is gone."""
        done = self._exchange(case, turn, {})
        return done if isinstance(done, Refused) else self._seen(case, done)

    def call_backward(
        self, case: Case, gradients: Mapping[str, torch.Tensor]
    ) -> tuple[Seen, dict[str, torch.Tensor | None]] | Refused:
        """Call forward and backward: what was seen, and gradients by name."""
        done = self._exchange(case, Turn(), gradients)
        if isinstance(done, Refused):
            return done
        found = {each.name: self._board.read(each, self._room.outputs) for each in done.gradients}
        return self._seen(case, done), found

    def construct(self, draft: Draft) -> Refused | None:
        """Make an instance with the weights of a draft, unless the present one has them."""
        if draft.identity == self._constructed:
            return None
        when = f"while it was constructed for {draft.condition.label}"
        tensors = {**draft.initial.tensors, **draft.state}
        slots, _ = place(tensors, 0)
        self._board.put(slots, tensors)
        message = Construct(
            seed=draft.condition.weights,
            arguments=draft.initial.values,
            inputs=tuple(slot for slot in slots if slot.name in draft.initial.tensors),
            state=tuple(slot for slot in slots if slot.name in draft.state),
        )
        answer = self.session.construct(message, when)
        if isinstance(answer, Refused):
            self._constructed = ""
            return answer
        self._constructed, self.state = draft.identity, answer
        return None

    def _exchange(self, case: Case, turn: Turn, gradients: Mapping[str, torch.Tensor]) -> Done | Refused:
        room, encoded = self._room, case.draft.encoded
        slots, _ = place({**encoded.tensors, **gradients}, room.inputs + turn.shift, flush=turn.fenced)
        self._board.put(slots, {**encoded.tensors, **gradients})
        self._board.poison(room.outputs, room.output_bytes)
        message = Call(
            nonce=os.urandom(16).hex(),
            arguments=encoded.values,
            inputs=tuple(slot for slot in slots if slot.name in encoded.tensors),
            output_offset=room.outputs,
            output_bytes=room.output_bytes,
            threads=turn.threads,
            protected=turn.protected,
            fenced=turn.fenced,
            same_objects=turn.same_objects,
            gradients=bool(gradients),
            output_gradients=tuple(slot for slot in slots if slot.name in gradients),
            suppress=turn.suppress,
            settle=turn.settle,
        )
        return self.session.call(message, case.condition.label)

    def _seen(self, case: Case, done: Done) -> Seen:
        mutated, trespass = self._board.changes()
        outputs = tuple(self._board.read(each, self._room.outputs) for each in done.outputs)
        return Seen(case=case, done=done, outputs=outputs, mutated=mutated, trespass=trespass)


def differing(one: Sequence[torch.Tensor | None], other: Sequence[torch.Tensor | None]) -> int:
    """How many elements of outputs have other bits; NaNs are equal, other shapes differ in all."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left is None or right is None or left.shape != right.shape or left.dtype != right.dtype:
            count += 1
            continue
        changed = left != right
        if left.is_floating_point():
            changed &= ~(left.isnan() & right.isnan())
        count += int(changed.sum())
    return count + abs(len(one) - len(other))


def _page(size: int) -> int:
    return -(-size // PAGE) * PAGE
