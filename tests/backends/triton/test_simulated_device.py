"""Host code sees the target's device while it is compiled, and nothing of it afterwards."""

import pytest
import torch

from pipeline.backends.triton.simulated_device import device_present, tensors_of
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from tests.backends.triton.triton_jobs import target

PROBLEM = Problem(
    kernel="loss",
    dimensions={"rows": 4, "cols": 8},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="bfloat16"),
        "classes": Tensor(role="input", shape=("rows",), dtype="int64"),
        "y": Tensor(role="output", shape=("rows",), dtype="bfloat16"),
    },
    scalars={},
    attributes={},
    element="bfloat16",
)


@pytest.mark.parametrize(
    ("hardware", "capability", "hip"), [("h200", (9, 0), False), ("mi300x", (9, 4), True)]
)
def test_questions_are_answered_as_on_the_target(hardware, capability, hip):
    """Multiprocessors, architecture, HIP; afterwards as before."""
    before = (torch.cuda.is_available(), torch.version.hip)
    with device_present(target(hardware)):
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_capability() == capability
        found = torch.cuda.get_device_properties("cuda").multi_processor_count
        assert found == target(hardware).limits["sm_count"]
        assert (torch.version.hip is not None) == hip
    assert (torch.cuda.is_available(), torch.version.hip) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.empty(3, device=x.device),
        torch.zeros_like,
        lambda x: x.new_empty(5),
        lambda x: x.view(-1, 4).contiguous(),
        lambda x: x.sum(dim=0).to(torch.float32),
        lambda x: torch.ones(2, device="cuda:0") + 1,
        lambda x: x.to("cuda"),
    ],
)
def test_tensors_say_that_they_are_there(make):
    """However they are made, they lie on the device and have no memory."""
    with device_present(target("h200")):
        made = make(tensors_of(PROBLEM)["x"])
        assert made.device == torch.device("cuda", 0)
        assert made.is_cuda
        assert made.data_ptr() == 0


def test_integer_inputs_can_be_looked_into():
    """Targets of a loss are valid classes."""
    with device_present(target("h200")):
        classes = tensors_of(PROBLEM)["classes"]
        assert (classes != 1).sum().item() == 4
        assert torch.empty(2, device=classes.device).device.type == "cuda"


class _Asks(torch.autograd.Function):
    """Its backward pass asks for the device."""

    @staticmethod
    def forward(ctx, x):
        """As it is."""
        ctx.save_for_backward(x)
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, dy):
        """Memory of its own, by the device of what was saved."""
        (x,) = ctx.saved_tensors
        assert x.is_cuda and dy.is_cuda
        parts = torch.empty((2, *dy.shape), device=x.device)
        return parts.sum(dim=0).to(dy.dtype)


def test_the_backward_pass_sees_the_device():
    """Autograd suspends modes and subclasses; here they are in force."""
    with device_present(target("h200")):
        x = tensors_of(PROBLEM)["x"].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(_Asks.apply(x), [x], torch.empty_like(x))
    assert gradient.shape == (4, 8)
