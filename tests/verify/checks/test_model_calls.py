"""The judge's rules on single calls, without a candidate: what is wrong, and which cause is reported."""

import msgspec
import pytest
import torch

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import Passed
from pipeline.verify.checks.delegated_work import did_the_work, differentiated
from pipeline.verify.checks.model_calls import ObservedCall, judge
from pipeline.verify.harness.encoding import encode, place
from pipeline.verify.harness.judged_calls import refusal
from pipeline.verify.harness.messages import (
    CallReply,
    Launches,
    Observed,
    OutputState,
    RefusedReply,
    TorchOperation,
)
from pipeline.verify.harness.model_cases import ModelCase, ModelOracle
from pipeline.verify.harness.planning.case_plans import CasePlanner, output_gradients
from pipeline.verify.harness.planning.trial_conditions import Condition
from pipeline.verify.harness.proxy import CandidateMemory
from tests.verify.harness.problems import SCALED_SOFTMAX, problem_of


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> ModelCase:
    """The first draw of a problem."""
    planner = CasePlanner(problem_of(tmp_path_factory.mktemp("problem"), SCALED_SOFTMAX), strict_strides=True)
    condition = Condition(kind="base", sizes={}, weights=1, seed=2, refusable=False)
    return ModelOracle(planner, None).case(planner.make(condition))


def call(case: ModelCase, output: torch.Tensor | None = None, **changes) -> ObservedCall:
    """A right call, or what becomes of it by changes of its output, answer and traces."""
    right = case.plan.values[0]
    value = right if output is None else output
    returned = OutputState(
        name="output 0",
        kind=changes.pop("kind", "Tensor"),
        dtype=str(value.dtype).removeprefix("torch."),
        shape=tuple(value.shape),
        strides=changes.pop("strides", tuple(value.stride())),
        **{name: changes.pop(name) for name in tuple(changes) if name in OutputState.__struct_fields__},
    )
    observed = {name: changes.pop(name) for name in tuple(changes) if name in Observed.__struct_fields__}
    done = CallReply(
        nonce="",
        outputs=(returned,) * changes.pop("count", 1),
        structure=changes.pop("structure", "tensor"),
        observed=Observed(**observed),
        seconds=0.0,
    )
    return ObservedCall(
        case=case,
        done=done,
        outputs=(value.contiguous(),),
        mutated=changes.pop("mutated", {}),
        trespass=changes.pop("trespass", None),
    )


def test_right_call(case: ModelCase) -> None:
    """What PyTorch returns itself is right and uses a part of the bound."""
    verdict = judge(call(case))
    assert isinstance(verdict, Passed)
    assert 0 < verdict.share < 1


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        ({"structure": "tuple"}, Outcome.WRONG_SHAPE, "returned a tuple, expected a tensor"),
        ({"structure": "NoneType", "kind": "NoneType"}, Outcome.WRONG_SHAPE, "returned nothing, expected"),
        ({"kind": "Lazy"}, Outcome.WRONG_SHAPE, "is a Lazy, expected a torch.Tensor"),
        ({"strides": (1, 24)}, Outcome.WRONG_SHAPE, r"has strides \(1, 24\), expected \(80, 1\)"),
        ({"elsewhere": "meta"}, Outcome.WRONG_SHAPE, "is on meta"),
        ({"overlaps": True}, Outcome.WRONG_SHAPE, "share memory"),
        ({"aliases": ("input 0",)}, Outcome.WRONG_SHAPE, "shares the memory of input 0"),
        ({"changed_later": True}, Outcome.TAMPERED, "changed after the call had returned"),
        ({"tampering": ("time.time was replaced",)}, Outcome.TAMPERED, "time.time was replaced"),
        ({"children": 1}, Outcome.TAMPERED, "left 1 process running"),
        ({"trespass": "input 0: 4 elements around it were written"}, Outcome.OUT_OF_BOUNDS, "4 elements"),
        ({"out_of_bounds": ("8 bytes past the end",)}, Outcome.OUT_OF_BOUNDS, "8 bytes past the end"),
    ],
)
def test_what_is_wrong(case: ModelCase, changes: dict, outcome: Outcome, reason: str) -> None:
    """Each trace has its outcome, and the reason says under which condition it was found."""
    failure = judge(call(case, **changes))
    assert isinstance(failure, Failure)
    assert failure.outcome is outcome
    with pytest.raises(ValueError, match=reason):
        raise ValueError(failure.reason)
    assert case.condition.label in failure.reason


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda right: right.double(), Outcome.WRONG_DTYPE),
        (lambda right: right[:, :1], Outcome.WRONG_SHAPE),
        (lambda right: right[None], Outcome.WRONG_SHAPE),
        (lambda right: right * 1.0001, Outcome.WRONG_VALUE),
        (lambda right: right.half().float(), Outcome.WRONG_VALUE),
        (torch.zeros_like, Outcome.WRONG_VALUE),
        (lambda right: torch.full_like(right, float("nan")), Outcome.WRONG_VALUE),
        (lambda right: right.index_fill(1, torch.tensor([5]), 0.0), Outcome.WRONG_VALUE),
    ],
)
def test_wrong_outputs(case: ModelCase, change, outcome: Outcome) -> None:
    """Types, shapes that would broadcast, and values."""
    failure = judge(call(case, change(case.plan.values[0])))
    assert isinstance(failure, Failure)
    assert failure.outcome is outcome


def test_inputs_that_changed(case: ModelCase) -> None:
    """The element is named; with correct outputs, the input was reused."""
    now = case.plan.encoded.tensors["input 0"].clone()
    now[2, 3] = 7.0
    failure = judge(call(case, mutated={"input 0": now}))
    assert isinstance(failure, Failure)
    assert failure.reason.startswith("input 0: 1 of 1920 elements changed, first [2, 3]")
    failure = judge(call(case, mutated={"input 0": now}, aliases=("input 0",)))
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.INPUT_REUSED
    assert "was written into input 0" in failure.reason
    failure = judge(call(case, torch.zeros(24, 80), mutated={"input 0": now}))
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.INPUT_MUTATED


def test_a_gradient_that_changed(case: ModelCase) -> None:
    """What a backward is given is as little its own as an input."""
    given = output_gradients(case.plan)["output gradient 0"]
    failure = judge(call(case, torch.zeros(24, 80), mutated={"output gradient 0": given + 1}))
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.INPUT_MUTATED
    assert failure.reason.startswith("output gradient 0: 1920 of 1920 elements changed")


def test_unwritten_elements(case: ModelCase) -> None:
    """Named as such where their values are wrong; a right value is a number that came out by chance."""
    seen = call(case, torch.full((24, 80), 0.0133), unwritten=3)
    failure = judge(seen)
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.UNWRITTEN_OUTPUT
    assert "3 elements were never written" in failure.reason
    assert isinstance(judge(call(case, unwritten=3)), Passed)


def test_tampering_comes_first(case: ModelCase) -> None:
    """A candidate that changed what it is judged with is not told about its values."""
    seen = call(case, torch.zeros(24, 80), tampering=("torch.allclose was replaced",), unwritten=2)
    failure = judge(seen)
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.TAMPERED


OWN = Launches(kind="triton", name="kernel", count=1)
SOFTMAX = {"aten::_softmax": 100}


def operation(name: str, elements: int = 100, **traces) -> TorchOperation:
    """One that PyTorch computed."""
    traces = {"from_own": False, "is_output": False} | traces
    return TorchOperation(name=name, count=1, elements=elements, **traces)


@pytest.mark.parametrize(
    ("observed", "reference", "words"),
    [
        (Observed(), SOFTMAX, "no kernel of its own was launched"),
        (Observed(operations=(operation("aten::_softmax"),)), SOFTMAX, "PyTorch did: aten::_softmax"),
        (
            Observed(
                launches=(msgspec.structs.replace(OWN, copies=True),), operations=(operation("aten::exp"),)
            ),
            SOFTMAX,
            "its own kernels only copy",
        ),
        (
            Observed(launches=(OWN,), operations=(operation("aten::_softmax.out"),)),
            SOFTMAX,
            "PyTorch computed all that Model computes",
        ),
        (
            Observed(launches=(OWN,), operations=(operation("aten::addmm"),)),
            {"aten::mm": 100},
            "PyTorch computed all that Model computes",
        ),
        (
            Observed(launches=(OWN,), operations=(operation("libtorch_cpu.so:sgemm_", 30),)),
            {"aten::mm": 100},
            "PyTorch computed all that Model computes: libtorch_cpu.so:sgemm_",
        ),
        (
            Observed(
                launches=(OWN,), operations=(operation("aten::relu"), operation("at::native::mm_out_cpu"))
            ),
            {"aten::mm": 100, "aten::relu": 100},
            "PyTorch computed all that Model computes",
        ),
        (
            Observed(launches=(OWN,), operations=(operation("aten::exp", is_output=True),)),
            SOFTMAX,
            "PyTorch computed the output: aten::exp",
        ),
        (
            Observed(launches=(OWN,), operations=(operation("aten::exp", is_output=True, beside_own=True),)),
            SOFTMAX | {"aten::cat": 90},
            "PyTorch computed the output: aten::exp",
        ),
        (
            Observed(
                launches=(msgspec.structs.replace(OWN, reads="weights"),),
                operations=(operation("aten::mm"), operation("aten::gelu", 10, from_own=True)),
            ),
            {"aten::mm": 100, "aten::tanh": 10, "aten::add": 10},
            "PyTorch computed on the whole input before a kernel of its own saw it: aten::mm",
        ),
        (
            Observed(
                launches=(msgspec.structs.replace(OWN, reads="weights"),),
                operations=(operation("aten::linear"), operation("aten::addmm")),
            ),
            {"aten::mm": 100, "aten::add": 100},
            "PyTorch computed all that Model computes",
        ),
        (
            Observed(launches=(OWN,), operations=(operation("aten::mm"), operation("aten::gt"))),
            {"aten::mm": 100, "aten::relu": 100},
            "PyTorch computed all that Model computes",
        ),
    ],
)
def test_others_did_the_work(observed: Observed, reference: dict, words: str) -> None:
    """What PyTorch computed instead is named."""
    failure = did_the_work(observed, reference)
    assert failure is not None
    assert failure.outcome is Outcome.TAMPERED
    assert words in failure.reason


@pytest.mark.parametrize(
    ("observed", "reference"),
    [
        (Observed(launches=(OWN,)), SOFTMAX),
        (Observed(native=("/tmp/own.so",)), SOFTMAX),
        (Observed(launches=(msgspec.structs.replace(OWN, copies=True),)), {}),
        (
            Observed(launches=(OWN,), operations=(operation("aten::convolution"),)),
            {"aten::convolution": 100, "aten::relu": 100},
        ),
        (
            Observed(launches=(OWN,), operations=(operation("libtorch_cpu.so:sgemm_"),)),
            {"aten::mm": 100, "aten::relu": 100},
        ),
        (
            Observed(
                launches=(OWN,), operations=(operation("aten::sum", 10, from_own=True, is_output=True),)
            ),
            {"aten::sum": 100},
        ),
        (
            Observed(launches=(OWN,), operations=(operation("aten::cat", 10, is_output=True),)),
            {"aten::convolution": 100, "aten::cat": 110},
        ),
        (
            Observed(
                launches=(OWN,), operations=(operation("aten::bmm", 50, is_output=True, beside_own=True),)
            ),
            {"aten::bmm": 100, "aten::exp": 100},
        ),
        (
            Observed(
                launches=(msgspec.structs.replace(OWN, reads="weights"),),
                operations=(operation("aten::addmm", from_own=True, is_output=True),),
            ),
            {"aten::mm": 100, "aten::mul": 90, "aten::add": 20},
        ),
        (
            Observed(
                launches=(msgspec.structs.replace(OWN, reads="derived"),),
                operations=tuple(
                    operation(f"aten::{name}")
                    for name in ("conv2d", "convolution", "_convolution", "mkldnn_convolution")
                ),
            ),
            {"aten::convolution": 100, "aten::native_batch_norm": 100, "aten::relu": 100, "aten::add": 100},
        ),
    ],
)
def test_its_own_work(observed: Observed, reference: dict) -> None:
    """Own kernels, native code, a copy where Model only copies, a part that PyTorch computed, a last sum, a
    second output that is the inputs joined or small, weights that were prepared.
    """
    assert did_the_work(observed, reference) is None


def test_gradients_by_autograd() -> None:
    """Who computes all of forward itself may not have PyTorch differentiate its own operators."""
    forward = Observed(launches=(OWN,))
    formula = Observed(operations=(operation("aten::sigmoid"), operation("aten::mul")))
    autograd = Observed(operations=(operation("aten::silu"), operation("aten::silu_backward")))
    assert differentiated([forward], formula) is None
    assert differentiated([formula], autograd) is None  # PyTorch's part of forward has a backward
    called = Observed(operations=(operation("aten::native_batch_norm_backward"), operation("aten::mul")))
    assert differentiated([forward], called) is None  # on what its own forward kept
    rectified = Observed(operations=(operation("aten::relu"), operation("aten::threshold_backward")))
    assert differentiated([forward], rectified) is not None
    failure = differentiated([forward], autograd)
    assert failure is not None
    assert failure.reason == "PyTorch computed the gradient: aten::silu_backward"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (RefusedReply(stage="import", error="ImportError", reason="x"), Outcome.COMPILE_ERROR),
        (RefusedReply(stage="build", error="BuildError", reason="x"), Outcome.COMPILE_ERROR),
        (RefusedReply(stage="build", error="DeviceUnavailable", reason="x"), Outcome.DEVICE_UNAVAILABLE),
        (RefusedReply(stage="construct", error="TypeError", reason="x"), Outcome.LAUNCH_ERROR),
        (RefusedReply(stage="call", error="ValueError", reason="x"), Outcome.LAUNCH_ERROR),
        (RefusedReply(stage="call", error="SystemExit", reason="x"), Outcome.CRASHED),
        (
            RefusedReply(
                stage="call", error="OSError", reason="[Errno 30] Read-only file system: '/proc/self/mem'"
            ),
            Outcome.TAMPERED,
        ),
    ],
)
def test_refusals(answer: RefusedReply, outcome: Outcome) -> None:
    """What an exception means where none was allowed."""
    assert refusal(answer, "").outcome is outcome


def test_board_sees_every_byte() -> None:
    """Changes inside of tensors, between their rows and around them are distinguished."""
    tensors = {"input 0": torch.randn(4, 6)[:, :5], "input 1": torch.randn(3).expand(2, 3)}
    slots, size = place(tensors, 0)
    with CandidateMemory(size) as memory:
        memory.put(slots, tensors)
        assert memory.changes() == ({}, None)
        assert torch.equal(memory.copy(slots[1]), tensors["input 1"])
        memory.bits(slots[0])[1, 2] += 1
        mutated, trespass = memory.changes()
        assert list(mutated) == ["input 0"]
        assert trespass is None
        memory.put(slots, tensors)
        memory.bits(slots[0]).as_strided((1,), (1,), slots[0].guard + 5).add_(1)  # between two rows
        assert memory.changes() == ({}, "input 0: 1 elements around it were written")


@pytest.mark.parametrize(
    "changes", [{"offset": -8}, {"offset": 1 << 40}, {"shape": (1 << 40,)}, {"shape": (-3,)}, {"dtype": "nn"}]
)
def test_board_reads_nothing_else(changes: dict) -> None:
    """What a process says about places and shapes is checked before memory is read."""
    right = OutputState(
        name="output 0", kind="Tensor", dtype="float32", shape=(3,), strides=(1,), offset=4096
    )
    with CandidateMemory(8192) as memory:
        assert memory.read(right, 4096) is not None
        assert memory.read(right, 4352) is None
        assert memory.read(msgspec.structs.replace(right, **changes), 4096) is None


def test_arguments_survive() -> None:
    """Nested arguments are plain values with named tensors; one tensor that is given twice stays one."""
    x = torch.ones(2)
    given = [x, [x, (1, None)], {"a": torch.zeros(1)}, torch.float16, "s", True]
    encoded = encode(given, "input", "get_inputs()")
    assert list(encoded.tensors) == ["input 0", "input 1"]
    back = encoded.decode()
    assert back[0] is x
    assert back[1] == [x, (1, None)]
    assert back[3:] == [torch.float16, "s", True]


@pytest.mark.parametrize(
    ("names", "tampered"),
    [
        (("aten::mm", "aten::relu"), False),
        (("aten::linear", "aten::addmm", "aten::relu"), False),
        (("aten::mm", "aten::addmm", "aten::relu"), True),
        (("aten::conv2d", "aten::convolution", "aten::mkldnn_convolution", "aten::relu"), False),
        (("aten::conv2d", "aten::convolution", "aten::mm", "aten::relu"), True),
    ],
)
def test_one_of_two_products_is_left_to_pytorch(names: tuple[str, ...], tampered: bool) -> None:
    """A product counts once, by whatever names it is seen."""
    observed = Observed(launches=(OWN,), operations=tuple(operation(name) for name in names))
    reference, called = {"aten::addmm": 100, "aten::relu": 100}, {"aten::addmm": 2, "aten::relu": 1}
    assert (did_the_work(observed, reference, called=called) is not None) == tampered
    larger = Observed(launches=(OWN,), operations=tuple(operation(name, 200) for name in names))
    assert did_the_work(larger, reference, called=called) is not None, "both products in one"


def test_one_of_two_softmaxes_is_left_to_pytorch() -> None:
    """It is seen by the name of what was called, and of what that calls."""
    observed = Observed(launches=(OWN,), operations=(operation("aten::softmax"), operation("aten::_softmax")))
    assert did_the_work(observed, {"aten::_softmax": 100}, called={"aten::_softmax": 2}) is None
    assert did_the_work(observed, {"aten::_softmax": 100}, called={"aten::_softmax": 1}) is not None


def test_functions_of_elements_may_be_written_in_other_ways() -> None:
    """Fewer of them are no work of its own."""
    observed = Observed(launches=(OWN,), operations=(operation("aten::addcmul"), operation("aten::relu")))
    reference = {"aten::mul": 100, "aten::rsub": 100, "aten::clamp": 100}
    failure = did_the_work(observed, reference, called=dict.fromkeys(reference, 2))
    assert failure is not None
    assert "PyTorch computed all" in failure.reason


def test_one_of_two_outputs_is_left_to_pytorch() -> None:
    """If own kernels computed the other one from all of an input, and not PyTorch what they computed."""
    reference = {"aten::sort": 10, "aten::clamp": 10, "aten::sum": 100}
    clamped = operation("aten::clamp", 10, is_output=True, with_own=True)
    sorted_, summed = operation("aten::sort", 10), operation("aten::sum")
    assert did_the_work(Observed(launches=(OWN,), operations=(sorted_, clamped)), reference) is None
    alone = msgspec.structs.replace(clamped, with_own=False)
    assert did_the_work(Observed(launches=(OWN,), operations=(sorted_, alone)), reference) is not None
    assert did_the_work(Observed(launches=(OWN,), operations=(summed, clamped)), reference) is not None
