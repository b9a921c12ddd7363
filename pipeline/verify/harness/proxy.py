"""The judge's side of a candidate's process: constructs and calls the candidate, and reads its outputs.

In: a session, shared memory, cases. Out: a record of each call (`ObservedCall`), or that it was refused.
Places and shapes that the process reports are checked before memory is read.
"""

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from pipeline.records.record import Record
from pipeline.verify.checks.model_calls import ObservedCall
from pipeline.verify.harness.buffers import ALIGNMENT, Arena, Slot, repeat_word
from pipeline.verify.harness.encoding import PAGE, distinct, place
from pipeline.verify.harness.messages import (
    CallReply,
    ConstructRequest,
    ForwardCall,
    OutputState,
    ReadyReply,
    RefusedReply,
    WeightUpdate,
)
from pipeline.verify.harness.model_cases import ModelCase
from pipeline.verify.harness.planning.case_plans import CasePlan, output_gradients
from pipeline.verify.harness.planning.trial_conditions import CallOptions
from pipeline.verify.harness.runtime.memory_protection import fenced, protected
from pipeline.verify.harness.session import Session

_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}
_GUARD = 0x7FFF  # a NaN that is no pattern of other memory: what was read beyond an input shows in the result
_POISON = 0x7F  # repeated, a NaN in most floating types


class CandidateMemory(Arena):
    """An arena that knows what it wrote."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._written: dict[str, tuple[Slot, torch.Tensor]] = {}

    def put(self, slots: Iterable[Slot], tensors: Mapping[str, torch.Tensor]) -> None:
        """Write tensors between guard bands, and remember all bytes."""
        self._written = {}
        for slot in slots:
            region = self.region(slot)
            region.fill_(repeat_word(_GUARD, slot.itemsize))
            if slot.span:
                distinct(self.view(slot)).copy_(distinct(tensors[slot.name]))
            self._written[slot.name] = (slot, region.clone())

    @contextlib.contextmanager
    def limited(self, slots: Sequence[Slot], options: CallOptions) -> Iterator[None]:
        """Inside, this process is limited as the candidate's is in such a call."""
        shield = protected(self._memory, slots) if options.protected else contextlib.nullcontext()
        fence = fenced(self._memory, slots) if options.fenced else contextlib.nullcontext()
        with shield, fence:
            yield

    def poison(self, offset: int, size: int) -> None:
        """Let nothing of an earlier call be left where outputs will be copied to."""
        torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=offset).fill_(_POISON)

    def changes(self) -> tuple[dict[str, torch.Tensor], str | None]:
        """Tensors that are not what was written, as they are now, and what was written around them."""
        mutated: dict[str, torch.Tensor] = {}
        trespass = None
        for name, (slot, before) in self._written.items():
            changed = self.region(slot) != before
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

    def read(self, returned: OutputState, first: int) -> torch.Tensor | None:
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
ALIGNED_LEAD = 64  # elements, at least 64 bytes: an offset in the storage that is as well aligned
_SLACK = 1 << 16  # bytes of layout for outputs that are larger than they should be


class SharedLayout(Record, frozen=True, kw_only=True):
    """Places in the shared memory of one candidate: weights, inputs, outputs."""

    inputs: int
    outputs: int
    output_bytes: int

    @property
    def size(self) -> int:
        """Bytes of all."""
        return self.outputs + self.output_bytes


def layout_for(plans: Iterable[CasePlan], *, gradients: bool) -> SharedLayout:
    """Enough for each of the plans."""
    inputs, sizes, outputs = PAGE, 0, 0
    for plan in plans:
        inputs = max(inputs, place({**plan.initial.tensors, **plan.state}, 0)[1])
        given = dict(plan.encoded.tensors)
        if gradients:
            given |= output_gradients(plan)
        sizes = max(
            sizes, place(given, 0, flush=True)[1], place(given, 0)[1], place(given, 0, lead=ALIGNED_LEAD)[1]
        )
        outputs = max(outputs, output_room(plan, gradients=gradients))
    return SharedLayout(inputs=inputs, outputs=_page(inputs + sizes + SHIFT), output_bytes=outputs)


def output_room(plan: CasePlan, *, gradients: bool) -> int:
    """Bytes for what a call returns.

    Twice 8 bytes for each element: what has a wrong type or shape is read as well, and then named.
    """
    back = list(plan.values)
    if gradients:
        back += [*plan.encoded.tensors.values(), *output_gradients(plan).values(), *plan.state.values()]
    return _page(sum(16 * tensor.numel() + ALIGNMENT for tensor in back) + _SLACK)


class CandidateProxy:
    """A candidate that is being tried."""

    def __init__(self, session: Session, memory: CandidateMemory, layout: SharedLayout) -> None:
        self.session = session
        self._memory = memory
        self._layout = layout
        self._constructed = ""
        self.calls = 0
        """How many were made, those that were refused or did not return included."""
        self.state = ReadyReply()
        """How the weights of the present instance were taken over."""

    def call(self, case: ModelCase, options: CallOptions) -> ObservedCall | RefusedReply:
        """Call what was constructed for the case; raises Ended where the process is gone."""
        done = self._exchange(case, options, {})
        return done if isinstance(done, RefusedReply) else self._seen(case, done)

    def call_backward(
        self, case: ModelCase, gradients: Mapping[str, torch.Tensor], options: CallOptions
    ) -> tuple[ObservedCall, dict[str, torch.Tensor | None]] | RefusedReply:
        """Call forward and backward: what was seen, and gradients by name."""
        done = self._exchange(case, options, gradients)
        if isinstance(done, RefusedReply):
            return done
        found = {each.name: self._memory.read(each, self._layout.outputs) for each in done.gradients}
        return self._seen(case, done), found

    def construct(self, plan: CasePlan) -> RefusedReply | None:
        """Make an instance with the weights of a plan, unless the present one has them."""
        if plan.identity == self._constructed:
            return None
        when = f"while it was constructed for {plan.condition.label}"
        tensors = {**plan.initial.tensors, **plan.state}
        slots, _ = place(tensors, 0)
        self._memory.put(slots, tensors)
        message = ConstructRequest(
            seed=plan.condition.weights,
            arguments=plan.initial.values,
            inputs=tuple(slot for slot in slots if slot.name in plan.initial.tensors),
            state=tuple(slot for slot in slots if slot.name in plan.state),
        )
        answer = self.session.construct(message, when)
        if isinstance(answer, RefusedReply):
            self._constructed = ""
            return answer
        self._constructed, self.state = plan.identity, answer
        return None

    def forget_instance(self) -> None:
        """Make another one for the next call: what the present one keeps may be wrong by now."""
        self._constructed = ""

    def update(self, plan: CasePlan, how: WeightUpdate) -> RefusedReply | None:
        """Give the present instance the weights of another plan, as its user would."""
        slots, _ = place(plan.state, 0)
        self._memory.put(slots, plan.state)
        message = ConstructRequest(
            seed=plan.condition.weights, arguments=[], inputs=(), state=slots, update=how
        )
        answer = self.session.construct(message, f"while its weights were changed ({how})")
        if isinstance(answer, RefusedReply):
            self._constructed = ""
            return answer
        self._constructed, self.state = plan.identity, answer
        return None

    def _exchange(
        self, case: ModelCase, options: CallOptions, gradients: Mapping[str, torch.Tensor]
    ) -> CallReply | RefusedReply:
        self.calls += 1
        layout, encoded = self._layout, case.plan.encoded
        tensors = {**encoded.tensors, **gradients}
        slots, _ = place(tensors, layout.inputs + options.shift, flush=options.fenced, lead=options.lead)
        self._memory.put(slots, tensors)
        room = output_room(case.plan, gradients=bool(gradients))
        self._memory.poison(layout.outputs, room)
        message = ForwardCall(
            nonce=os.urandom(16).hex(),
            arguments=encoded.values,
            inputs=tuple(slot for slot in slots if slot.name in encoded.tensors),
            output_offset=layout.outputs,
            output_bytes=room,
            threads=options.threads,
            protected=options.protected,
            fenced=options.fenced,
            same_objects=options.same_objects,
            gradients=bool(gradients),
            output_gradients=tuple(slot for slot in slots if slot.name in gradients),
            interrupted=options.interrupted,
            suppress=options.suppress,
            settle=options.settle,
        )
        return self.session.call(message, case.condition.label)

    def _seen(self, case: ModelCase, done: CallReply) -> ObservedCall:
        mutated, trespass = self._memory.changes()
        outputs = tuple(self._memory.read(each, self._layout.outputs) for each in done.outputs)
        return ObservedCall(case=case, done=done, outputs=outputs, mutated=mutated, trespass=trespass)


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
