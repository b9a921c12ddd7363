"""The conformance suite of the checks: every member lets what is right pass, and finds what it is for."""

from collections.abc import Callable

import msgspec
import pytest
import torch

from pipeline.backends.backend import MemoryFault
from pipeline.records.outcome import Failure
from pipeline.verify.checks.call_observation import (
    CallObservation,
    NotApplicable,
    Passed,
)
from pipeline.verify.checks.determinism import changed_beyond_rounding
from pipeline.verify.checks.gate import CHECKS
from pipeline.verify.harness.messages import Observed, OutputState, TorchOperation
from pipeline.verify.oracle.tolerance import Expected
from tests.verify.oracle.simulated import Stage, prepared, softmax, stage


def beyond(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """The element so far before or behind the first one of a tensor in the arena."""
    whole = torch.tensor([], dtype=tensor.dtype).set_(tensor.untyped_storage())
    return whole[offset : offset + 1]


def after(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[dict[str, torch.Tensor]], None]:
    """A right kernel that then does something else."""

    def kernel(tensors: dict[str, torch.Tensor]) -> None:
        softmax(tensors)
        change(tensors)

    return kernel


def shown(stage: Stage, **changes: object) -> CallObservation:
    """A right call whose output is reported to be something else."""
    fields: dict = {"name": "y", "dtype": "float32", "shape": (13, 29), "strides": (29, 1), "moved": False}
    return stage.observe(softmax, seen=(OutputState(**(fields | changes)),))


def again(stage: Stage, action: Callable, **keywords: bool) -> CallObservation:
    """A second call, after a right first one."""
    return stage.observe(action, turn="again", first=stage.observe(softmax), **keywords)


def unchanged(tensors: dict[str, torch.Tensor]) -> None:
    """Writes nothing."""


def noticing(**changes: object) -> Callable[[Stage], CallObservation]:
    """A right call during which something was noticed."""
    return lambda stage: stage.observe(softmax, observed=Observed(**({"counted": 1} | changes)))


def computed(name: str) -> TorchOperation:
    """An operator that PyTorch computed, or the host."""
    return TorchOperation(name=name, count=1, elements=377, from_own=False, is_output=False)


WRONG: dict[str, dict[str, tuple[str, Callable[[Stage], CallObservation]]]] = {
    "metadata": {
        "dtype": ("wrong_dtype", lambda stage: shown(stage, dtype="float64")),
        "shape": ("wrong_shape", lambda stage: shown(stage, shape=(29, 13))),
        "strides": ("wrong_shape", lambda stage: shown(stage, strides=(1, 13))),
        "moved": ("unwritten_output", lambda stage: shown(stage, moved=True)),
        "absent": ("wrong_shape", lambda stage: stage.observe(softmax, seen=())),
    },
    "guards": {
        "past the end": ("out_of_bounds", lambda s: s.observe(after(lambda t: write_past(s, "y", 0)))),
        "far past the end": ("out_of_bounds", lambda s: s.observe(after(lambda t: write_past(s, "y", 9999)))),
        "before the start": ("out_of_bounds", lambda s: s.observe(after(lambda t: write_before(s, "x", 1)))),
        "memory of its own": ("out_of_bounds", noticing(out_of_bounds=("y 8 bytes past the end",))),
        "padding": ("out_of_bounds", lambda s: s.observe(after(lambda t: beyond(t["x"], 29).fill_(1)))),
    },
    "memory": {
        "out of bounds": (
            "out_of_bounds",
            noticing(memory_faults=(MemoryFault(kind="out_of_bounds", text="load of 4 elements"),)),
        ),
        "race": ("nondeterministic", noticing(memory_faults=(MemoryFault(kind="race", text="data race"),))),
    },
    "races": {
        "threads": (
            "nondeterministic",
            lambda stage: stage.observe(
                softmax,
                turn="watched",
                observed=Observed(memory_faults=(MemoryFault(kind="race", text="data race"),)),
            ),
        ),
    },
    "mutation": {
        "one element": ("input_mutated", lambda s: s.observe(after(lambda t: t["x"][12, 28].add_(1)))),
        "sign of zero": ("input_mutated", lambda s: s.observe(after(lambda t: t["x"].neg_()))),
    },
    "tampering": {
        "function": ("tampered", noticing(tampering=("time.perf_counter was replaced",))),
        "thread": ("tampered", noticing(threads=1)),
        "processes": ("tampered", noticing(children=2)),
    },
    "work": {
        "torch": ("tampered", noticing(operations=(computed("aten::_softmax"),))),
        "host": ("tampered", noticing(operations=(computed("numpy:exp"),))),
        "no launch": ("tampered", noticing(counted=0)),
    },
    "completion": {
        "host": ("tampered", lambda s: s.observe(softmax, later=lambda t: t["y"][12, 28].add_(1))),
        "device": ("tampered", lambda s: shown(s, changed_later=True)),
    },
    "written": {
        "nothing": ("unwritten_output", lambda s: s.observe(unchanged)),
        "all but one": ("unwritten_output", lambda s: s.observe(after(lambda t: poison(s, 1)))),
        "nothing the second time": ("unwritten_output", lambda s: again(s, unchanged)),
    },
    "value": {
        "zeros": ("wrong_value", lambda s: s.observe(lambda t: t["y"].zero_())),
        "last element": ("wrong_value", lambda s: s.observe(after(lambda t: t["y"][12, 28].mul_(1.0001)))),
        "nan": ("wrong_value", lambda s: s.observe(after(lambda t: t["y"][3, 3].fill_(float("nan"))))),
        "infinity": ("wrong_value", lambda s: s.observe(after(lambda t: t["y"][3, 3].fill_(float("inf"))))),
    },
    "determinism": {
        "last bit": ("nondeterministic", lambda s: again(s, after(lambda t: t["y"].mul_(1 + 2e-7)))),
        "garbage": (
            "nondeterministic",
            lambda s: again(s, after(lambda t: t["y"].mul_(1.1)), deterministic=False),
        ),
    },
}


def write_past(stage: Stage, name: str, distance: int) -> None:
    """Write behind a tensor."""
    slot = next(slot for slot in stage.layout.slots if slot.name == name)
    region = stage.arena.region(slot)
    region[slot.guard + slot.span + distance] = 0


def write_before(stage: Stage, name: str, distance: int) -> None:
    """Write in front of a tensor."""
    slot = next(slot for slot in stage.layout.slots if slot.name == name)
    stage.arena.region(slot)[slot.guard - distance] = 0


def poison(stage: Stage, count: int) -> None:
    """Put the poison of the first call back into some elements."""
    slot = next(slot for slot in stage.layout.slots if slot.name == "y")
    stage.arena.bits(slot)[0, :count] = 0x7FFC7FFC


def test_every_check_has_wrong_examples() -> None:
    """A check that is registered is also tried."""
    assert WRONG.keys() == CHECKS.keys()


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("distribution", ["normal", "special"])
def test_right_calls_pass(name: str, distribution: str) -> None:
    """No check objects to a right kernel, in any turn, and each passes one of them."""
    with stage(prepared(distribution=distribution)) as buffers:
        first = buffers.observe(softmax)
        judgements = [CHECKS[name](first)]
        judgements.append(CHECKS[name](buffers.observe(softmax, turn="again", first=first)))
        judgements.append(CHECKS[name](buffers.observe(softmax, turn="watched")))
    assert all(isinstance(judgement, Passed | NotApplicable) for judgement in judgements), judgements
    assert any(isinstance(judgement, Passed) for judgement in judgements)


@pytest.mark.parametrize(("name", "example"), [(name, wrong) for name in WRONG for wrong in WRONG[name]])
def test_wrong_calls_fail(name: str, example: str) -> None:
    """Each check finds what it is for, and says where and on which inputs."""
    outcome, act = WRONG[name][example]
    with stage() as buffers:
        judgement = CHECKS[name](act(buffers))
    assert isinstance(judgement, Failure)
    assert judgement.outcome == outcome, judgement.reason
    assert "rows=13 cols=29 padded, normal, seed 7" in judgement.reason
    if name not in ("tampering", "work", "memory", "races"):
        assert judgement.reason.startswith(("y", "x"))
    assert "\n" not in judgement.reason


def test_rounding_between_calls_is_legitimate_where_not_claimed() -> None:
    """A kernel that does not claim determinism may differ within its bound."""
    with stage() as buffers:
        last_bits = again(buffers, after(lambda t: t["y"].mul_(1 + 2e-7)), deterministic=False)
        assert isinstance(CHECKS["determinism"](last_bits), Passed)


def test_value_reports_the_share_of_the_bound() -> None:
    """A right result in float32 uses some of the bound, never none or all of it."""
    with stage() as buffers:
        judgement = CHECKS["value"](buffers.observe(softmax))
    assert isinstance(judgement, Passed)
    assert 0 < judgement.share < 1
    assert 0 < judgement.error < 1e-6


def test_reason_of_a_wrong_value() -> None:
    """The reason names element, value, expectation and how many are wrong."""
    with stage() as buffers:
        judgement = CHECKS["value"](buffers.observe(after(lambda t: t["y"][12, 28].fill_(9.0))))
    assert isinstance(judgement, Failure)
    assert judgement.reason.startswith("y[12, 28]: got 9, expected 0.")
    assert "; 1 of 377 beyond their bound" in judgement.reason


def test_operators_that_are_declared_may_be_used() -> None:
    """An implementation that says so may let PyTorch compute a part of it."""
    with stage() as buffers:
        observation = buffers.observe(
            softmax, observed=Observed(counted=1, operations=(computed("aten::sum"),))
        )
        declared = msgspec.structs.replace(observation, uses_torch=("aten::sum",))
        assert isinstance(CHECKS["work"](observation), Failure)
        assert isinstance(CHECKS["work"](declared), Passed)


def test_memory_counts_only_calls_whose_accesses_were_seen() -> None:
    """Nobody looks in native code, so that nothing passed; a fault that was noted counts all the same."""
    faults = Observed(memory_faults=(MemoryFault(kind="out_of_bounds", text="load of 4 elements"),))
    with stage() as buffers:
        right, wrong = (
            msgspec.structs.replace(buffers.observe(softmax, observed=observed), accesses_seen=False)
            for observed in (None, faults)
        )
        assert isinstance(CHECKS["memory"](right), NotApplicable)
        assert isinstance(CHECKS["memory"](wrong), Failure)


def test_a_backend_may_execute_its_sources_with_a_library() -> None:
    """NumPy computes for a backend that declares it, PyTorch still does not."""
    with stage() as buffers:
        for operation, refused in (("numpy:exp", False), ("aten::exp", True)):
            observation = buffers.observe(
                softmax, observed=Observed(counted=1, operations=(computed(operation),))
            )
            declared = msgspec.structs.replace(observation, computes_with=("numpy",))
            assert isinstance(CHECKS["work"](declared), Failure) is refused


def test_differences_between_calls_are_counted() -> None:
    """Nondeterminism is measured where it is allowed, and 0 where calls are equal."""
    with stage() as buffers:
        equal = CHECKS["determinism"](again(buffers, softmax))
        bits = CHECKS["determinism"](
            again(buffers, after(lambda t: t["y"][0].mul_(1 + 2e-7)), deterministic=False)
        )
    assert isinstance(equal, Passed)
    assert isinstance(bits, Passed)
    assert (equal.differing, equal.compared) == (0, 377)
    assert 0 < bits.differing <= 29


def test_a_wrong_value_says_what_may_explain_it() -> None:
    """What the interpreter saw, `tl.dot` in tf32 for example, is in the reason; a right value needs none."""
    observed = Observed(counted=1, remarks=("operands were rounded",))
    with stage() as buffers:
        wrong = CHECKS["value"](buffers.observe(lambda t: t["y"].zero_(), observed=observed))
        right = CHECKS["value"](buffers.observe(softmax, observed=observed))
    assert isinstance(wrong, Failure)
    assert "operands were rounded" in wrong.reason
    assert not isinstance(right, Failure)


def test_what_changes_beyond_rounding() -> None:
    """The order of a sum is no nondeterminism of a wrong kernel; other numbers and NaN are."""
    reference = torch.tensor([1.0, 2.0, float("nan"), 4.0], dtype=torch.float64)
    expected = Expected(
        dtype="float32", reference=reference, bound=torch.full((4,), 0.1, dtype=torch.float64), plain=False
    )
    one = torch.tensor([1.5, 2.0, 7.0, 4.0])
    assert changed_beyond_rounding(one, torch.tensor([1.55, 2.05, 7.5, 4.0]), expected) == 0
    assert changed_beyond_rounding(one, torch.tensor([1.75, 2.0, float("nan"), 4.0]), expected) == 2
    assert changed_beyond_rounding(one, torch.tensor([[1.5, 2.0, 7.0, 4.0]]), expected) == 4
