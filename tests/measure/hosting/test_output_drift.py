"""A callable that does less once it was called often is found out, one that sums in another order is not."""

from collections.abc import Callable

import msgspec
import pytest
import torch

from pipeline.backends.devices.cpu import Cpu
from pipeline.measure.hosting.candidate_integrity import FirstOutputs
from pipeline.measure.hosting.input_content import Content
from pipeline.records.configuration.kernel import Tensor
from tests.measure.problems import PROBLEM

CPU = Cpu()
TIMED = 20


class Kernel:
    """A softmax; after `TIMED` calls it does what `late` does to its result."""

    def __init__(self, content: Content, late: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
        self.content = content
        self.late = late
        self.calls = 0

    def __call__(self) -> None:
        """One call on the tensors as they lie now."""
        self.calls += 1
        x, y = (self.content.tensors[name] for name in "xy")
        if self.calls > TIMED:
            self.late(x, y)
        else:
            y.copy_(torch.softmax(x, -1))


def half(x: torch.Tensor, y: torch.Tensor) -> None:
    """Every second row."""
    y[::2] = torch.softmax(x[::2], -1)


def kept(x: torch.Tensor, y: torch.Tensor) -> None:
    """Nothing of the inputs."""
    y.fill_(1 / x.shape[-1])


def otherwise(x: torch.Tensor, y: torch.Tensor) -> None:
    """All of it, rounded otherwise."""
    y.copy_(torch.softmax(x.double(), -1) * (1 + 1e-5))


def difference(late: Callable[[torch.Tensor, torch.Tensor], None]) -> str | None:
    """What is said after the timed calls."""
    content = Content(PROBLEM, CPU)
    content.renew(3)
    kernel = Kernel(content, late)
    first = FirstOutputs(content, 3, lambda call: call())
    first.keep(lambda: kernel)
    for seed in range(TIMED):
        content.renew(seed)
        kernel()
    return first.difference(lambda: kernel)


@pytest.mark.parametrize(("late", "wrong"), [(half, "8,192"), (kept, "1,")])
def test_less_work_once_it_is_timed(late: Callable[[torch.Tensor, torch.Tensor], None], wrong: str) -> None:
    """The text counts the elements and says what that means."""
    said = difference(late)
    assert said is not None and f"it gives {wrong}" in said
    assert "of 16,384 elements of y otherwise: what was timed is not what verified" in said


def test_another_order_of_summation_is_none() -> None:
    """Atomics and reductions may round otherwise from call to call."""
    assert difference(otherwise) is None


def test_not_a_number_stays_one() -> None:
    """A result that was NaN and infinite at first may be so again; integers are compared as well."""
    tensors = {
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float32"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="int32"),
        "z": Tensor(role="output", shape=("cols",), dtype="float32"),
    }
    content = Content(msgspec.structs.replace(PROBLEM, tensors=tensors), CPU)
    content.renew(1)
    given = {"y": 5}

    def call() -> None:
        content.tensors["y"].fill_(given["y"])
        content.tensors["z"].fill_(float("inf"))
        content.tensors["z"][0] = float("nan")

    first = FirstOutputs(content, 1, lambda made: made())
    first.keep(lambda: call)
    assert first.difference(lambda: call) is None
    given["y"] = 6
    assert "elements of y otherwise" in (first.difference(lambda: call) or "")
