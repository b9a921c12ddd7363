"""What a candidate does past PyTorch and past values: NumPy, lists, inputs' form, results kept by object."""

from collections.abc import Iterator

import pytest
import torch

from pipeline.verify.harness.messages import CallReply, ReadyReply
from tests.verify.harness.candidate_process import RUNS_BODIES, CandidateProcess, body

SOURCE = f"""
import numpy as np, torch
WEIGHT = torch.ones(12)
{RUNS_BODIES}
ModelNew.kept = None
"""
X = torch.linspace(-3, 3, 96).reshape(8, 12)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CandidateProcess]:
    """One process for all of them; each instance begins with `self.kept = None`."""
    with CandidateProcess(SOURCE, tmp_path_factory.mktemp("shared"), where="host") as talk:
        yield talk


def call(talk: CandidateProcess, forward: str, x: torch.Tensor = X, **options: object) -> CallReply:
    """One call of a `forward(self, x)` with this body."""
    done = talk.call(body(forward), x, **options)
    assert isinstance(done, CallReply), done
    return done


@pytest.fixture
def talk(shared: CandidateProcess) -> CandidateProcess:
    """With a new instance."""
    assert isinstance(shared.construct(), ReadyReply)
    return shared


@pytest.mark.parametrize(
    ("forward", "names"),
    [
        ("return torch.from_numpy(np.maximum(x.numpy(), 0))", {"numpy:maximum"}),
        ("return torch.from_numpy(x.numpy() * 2 + 1)", {"numpy:multiply", "numpy:add"}),
        ("a = np.asarray(x).reshape(-1)\nreturn torch.tensor(a @ np.ones(96, np.float32))", {"numpy:matmul"}),
        ("return torch.from_numpy(np.einsum('ij->j', x.numpy()))", {"numpy:einsum"}),
        ("return torch.from_numpy(x.numpy().mean(1))", {"numpy:add", "numpy:divide"}),
        ("return torch.tensor([max(row) for row in x.tolist()])", {"python:tolist"}),
        ("x.numpy().ctypes.data\nreturn torch.from_numpy(np.ascontiguousarray(x.numpy().T).copy())", set()),
        ("w = WEIGHT.numpy() * 2\nw.tolist()\nreturn x * torch.from_numpy(w)", {"aten::mul"}),
        ("w = WEIGHT.numpy() * x.numpy()\nreturn torch.from_numpy(w)", {"numpy:multiply"}),
        ("(x * 0).long().tolist()\nreturn x.clone()", {"aten::mul"}),
    ],
)  # fmt: skip
def test_the_host_computes(talk: CandidateProcess, forward: str, names: set[str]) -> None:
    """Functions that compute are named with their elements; what moves values or reads weights is not."""
    operations = call(talk, forward).observed.operations
    assert {each.name for each in operations} - {"aten::div"} == names
    assert all(each.elements in (8, 12, 96) for each in operations)


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("x.unsqueeze_(0)\nreturn x.clone()", "is float32 (1, 8, 12)"),
        ("x.t_()\nreturn x.clone()", "is float32 (12, 8)"),
        ("out = x.clone()\nx.data = out\nreturn out.clone()", "at another address"),
        ("return x.unsqueeze(0).clone()", ""),
    ],
)
def test_inputs_keep_their_form(talk: CandidateProcess, forward: str, words: str) -> None:
    """A changed shape is reported like a changed value."""
    reshaped = call(talk, forward).reshaped
    assert bool(reshaped) == bool(words)
    assert words in "".join(reshaped)


@pytest.mark.parametrize(("unless", "right"), [("", False), (" and self.kept[2] == x._version", True)])
def test_the_same_object_holds_other_values(talk: CandidateProcess, unless: str, right: bool) -> None:
    """Who keeps a result by object gives a stale one; who also looks at the version does not."""
    forward = f"if self.kept is not None and self.kept[0] is x{unless}: return self.kept[1]\n"
    forward += "self.kept = (x, x + 1, x._version)\nreturn self.kept[1].clone()"
    call(talk, forward, same_objects=True)
    again = call(talk, forward, 2 * X, same_objects=True)
    assert torch.equal(talk.value(again.outputs[0]), 2 * X + 1) == right
    other = call(talk, forward, 3 * X)
    assert torch.equal(talk.value(other.outputs[0]), 3 * X + 1)


@pytest.mark.parametrize(
    ("forward", "overwrites"),
    [
        ("self.kept = x.clone() if self.kept is None else self.kept.copy_(x)\nreturn self.kept", True),
        ("return x.clone()", False),
    ],
)
def test_results_that_are_overwritten(talk: CandidateProcess, forward: str, overwrites: bool) -> None:
    """One buffer for all results is reported; a new one each time is not."""
    assert not call(talk, forward).overwrites
    assert call(talk, forward, 2 * X).overwrites == overwrites
