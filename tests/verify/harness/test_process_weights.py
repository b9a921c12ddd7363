"""The weights of the reference, and gradients."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pipeline.verify.harness.messages import CallReply, ReadyReply, RefusedReply
from tests.verify.harness.candidate_process import CandidateProcess

HEAD = "import torch\n"
X = torch.linspace(-2, 2, 12).reshape(3, 4)

torch.manual_seed(0)
WEIGHT, BIAS = torch.nn.Linear(4, 5).state_dict().values()
STATE = {"linear.weight": WEIGHT, "linear.bias": BIAS}


RUNS_CONSTRUCTORS = f"""
{HEAD}
class ModelNew(torch.nn.Module):
    def __init__(self, body):
        super().__init__()
        exec(body, dict(torch=torch, self=self))
    def forward(self):
        return self.get().clone()
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CandidateProcess]:
    """Runs the body of the constructor that it is given; `forward` returns the weight."""
    with CandidateProcess(RUNS_CONSTRUCTORS, tmp_path_factory.mktemp("shared")) as talk:
        yield talk


OTHER = {"linear.weight": WEIGHT + 1, "linear.bias": BIAS + 1}
LINEAR = "self.linear = torch.nn.Linear(4, 5)\nself.get = lambda: self.linear.weight"


@pytest.mark.parametrize(
    ("body", "state", "way", "missing", "spare", "weight"),
    [
        (LINEAR, STATE, "equal", (), 0, WEIGHT),
        (LINEAR, OTHER, "by name", (), 0, WEIGHT + 1),
        (LINEAR.replace("linear", "other"), OTHER, "by shape", (), 0, WEIGHT + 1),
        (
            "self.w = torch.nn.Linear(4, 5).weight.detach().t().contiguous()\nself.get = lambda: self.w",
            {"linear.weight": WEIGHT},
            "equal",
            (),
            0,
            WEIGHT.t(),
        ),
        (
            "self.w = torch.nn.Parameter(torch.zeros(7, 3))\nself.get = lambda: self.w",
            STATE,
            "none",
            ("linear.weight", "linear.bias"),
            21,
            torch.zeros(7, 3),
        ),
        ("self.get = lambda: torch.zeros(1)", {}, "equal", (), 0, torch.zeros(1)),
    ],
)
def test_weights_are_taken_over(
    shared: CandidateProcess,
    body: str,
    state: dict[str, torch.Tensor],
    way: str,
    missing: tuple[str, ...],
    spare: int,
    weight: torch.Tensor,
) -> None:
    """By name, by shape, or left alone where they are the same numbers in another form."""
    ready = shared.construct(body, state=state)
    assert isinstance(ready, ReadyReply), ready
    assert (ready.state, ready.missing, ready.spare) == (way, missing, spare)
    done = shared.call()
    assert isinstance(done, CallReply), done
    assert torch.equal(shared.value(done.outputs[0]), weight)


def test_arguments_of_the_model_are_its_own(tmp_path: Path) -> None:
    """Tensors among them do not change with the judge's memory."""
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self, w, n, names):\n"
    source += "        super().__init__(); self.w = w; assert (n, names) == (3, ('a', 'b'))\n"
    source += "    def forward(self, x): return self.w + 0 * x[0, 0]"
    with CandidateProcess(source, tmp_path) as talk:
        assert isinstance(talk.construct(X, 3, ("a", "b")), ReadyReply)
        done = talk.call(X + 1)
        assert isinstance(done, CallReply)
        assert torch.equal(talk.value(done.outputs[0]), X)


GRADIENTS = """
import torch, triton, triton.language as tl
@triton.jit
def scale(x, y, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)
def launch(x):
    y = torch.empty_like(x)
    scale[(1,)](x, y, x.numel(), B=64)
    return y
class Triple(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        assert x.is_cuda
        return launch(x)
    @staticmethod
    def backward(context, gradient):
        assert gradient.is_cuda
        return BACKWARD
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(4))
    def forward(self, x, n, unused): return Triple.apply(x) * self.gain, n
"""


@pytest.mark.parametrize(
    ("backward", "computed"),
    [
        ("launch(gradient.contiguous())", {"aten::mul"}),
        pytest.param("gradient.exp()", {"aten::mul", "aten::exp"}, marks=pytest.mark.slow),
    ],
)
def test_gradients_come_back_by_name(tmp_path: Path, backward: str, computed: set[str]) -> None:
    """Of inputs and parameters; what backward computes is seen; what has none is left out."""
    torch.manual_seed(1)
    gradient, numbers = torch.randn(3, 4), torch.arange(3)
    with CandidateProcess(GRADIENTS.replace("BACKWARD", backward), tmp_path) as talk:
        ready = talk.construct(state={"weight": torch.full((4,), 2.0)})
        assert isinstance(ready, ReadyReply), ready
        done = talk.call(X, numbers, X + 1, output_gradients=[gradient])
        assert isinstance(done, CallReply), done
        found = {each.name: talk.value(each) for each in done.gradients}
    assert set(found) == {"gradient of input 0", "gradient of weight"}
    expected = 6 * gradient if "launch" in backward else (2 * gradient).exp()
    torch.testing.assert_close(found["gradient of input 0"], expected)
    torch.testing.assert_close(found["gradient of weight"], (3 * X * gradient).sum(0))
    assert computed <= {each.name for each in done.observed.operations}
    assert done.observed.launches[0].count == 1 + ("launch" in backward)


def test_failing_backward_is_refused(tmp_path: Path) -> None:
    """With its stage."""
    source = GRADIENTS.replace("BACKWARD", "[][0]")
    with CandidateProcess(source, tmp_path) as talk:
        talk.construct()
        refused = talk.call(X, torch.arange(3), X, output_gradients=[X])
    assert isinstance(refused, RefusedReply)
    assert (refused.stage, refused.error) == ("backward", "IndexError")
