"""Have the outputs the form of `Model`'s: number, kind, dtype, shape, strides, device?

In: what the candidate's process reports, and the draft of the case. Out: a `Failure`, or None.
"""

from collections.abc import Iterator, Sequence

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.harness.returning.cases.case_plans import Draft, ReferenceOutput
from pipeline.verify.harness.returning.messages import Done, Returned

_PLAIN = ("Tensor", "Parameter")
_DEVICES = ("cpu", "cuda", "cuda:0", "")


def wrong_form(done: Done, draft: Draft) -> Failure | None:
    """The first thing about the outputs, beside their values, that differs."""
    if (done.structure == "tensor") == draft.several:
        expected = f"{len(draft.outputs)} tensors" if draft.several else "a tensor"
        return wrong_shape(f"returned {_article(done.structure)}, expected {expected}")
    if len(draft.outputs) != len(done.outputs):
        return wrong_shape(f"returned {len(done.outputs)} outputs, expected {len(draft.outputs)}")
    for reference, output in zip(draft.outputs, done.outputs, strict=True):
        for failure in _differences(output, reference, draft):
            return failure
    return None


def _differences(got: Returned, wanted: ReferenceOutput, draft: Draft) -> Iterator[Failure]:
    """In the order in which they are told; a difference may make the later ones meaningless."""
    if got.kind not in _PLAIN:
        yield wrong_shape(f"{got.name}: is {_article(got.kind)}, expected a torch.Tensor")
    if got.dtype != wanted.dtype:
        reason = f"{got.name}: is {got.dtype}, expected {wanted.dtype}"
        yield Failure(outcome=Outcome.WRONG_DTYPE, reason=reason)
    if got.shape != wanted.shape:
        yield wrong_shape(f"{got.name}: has shape {got.shape}, expected {wanted.shape}")
    if not _fitting_strides(got, wanted, draft):
        yield wrong_shape(f"{got.name}: has strides {got.strides}, expected {wanted.strides}")
    if got.device not in _DEVICES:
        yield wrong_shape(f"{got.name}: is on {got.device}, expected it where the inputs are")
    if got.overlaps:
        yield wrong_shape(f"{got.name}: two of its elements share memory")


def _fitting_strides(got: Returned, wanted: ReferenceOutput, draft: Draft) -> bool:
    """As `Model`'s, contiguous, or as an input of this shape, whose strides elementwise operators keep."""
    if 0 in got.shape:
        return True
    inputs = [
        tuple(tensor.stride())
        for tensor in draft.encoded.tensors.values()
        if tuple(tensor.shape) == got.shape
    ]
    allowed = [wanted.strides, contiguous_strides(got.shape), *inputs]
    axes = [axis for axis, size in enumerate(got.shape) if size > 1]
    return any(all(got.strides[axis] == strides[axis] for axis in axes) for strides in allowed)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a tensor without gaps, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def wrong_shape(reason: str) -> Failure:
    """A failure of form."""
    return Failure(outcome=Outcome.WRONG_SHAPE, reason=reason)


def _article(kind: str) -> str:
    return "nothing" if kind in ("NoneType", "None") else f"a {kind}"
