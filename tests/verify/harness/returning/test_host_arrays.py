"""What a candidate does past PyTorch and past values: NumPy, lists, inputs' form, results kept by object."""

from pathlib import Path

import pytest
import torch

from pipeline.verify.harness.returning.messages import CallReply
from tests.verify.harness.returning.candidate_process import CandidateProcess

HEAD = """
import numpy as np, torch
WEIGHT = torch.ones(12)
class ModelNew(torch.nn.Module):
    kept = None
    def forward(self, x):
"""
X = torch.linspace(-3, 3, 96).reshape(8, 12)


def conversation(folder: Path, body: str) -> CandidateProcess:
    """A candidate with this body of forward."""
    return CandidateProcess(
        HEAD + "".join(f"        {line}\n" for line in body.splitlines()), folder, where="host"
    )


@pytest.mark.parametrize(
    ("body", "names"),
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
def test_the_host_computes(tmp_path: Path, body: str, names: set[str]) -> None:
    """Functions that compute are named with their elements; what moves values or reads weights is not."""
    with conversation(tmp_path, body) as talk:
        operations = talk.run(X).observed.operations
    assert {each.name for each in operations} - {"aten::div"} == names
    assert all(each.elements in (8, 12, 96) for each in operations)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x.unsqueeze_(0)\nreturn x.clone()", "is float32 (1, 8, 12)"),
        ("x.t_()\nreturn x.clone()", "is float32 (12, 8)"),
        ("out = x.clone()\nx.data = out\nreturn out.clone()", "lies elsewhere"),
        ("return x.unsqueeze(0).clone()", ""),
    ],
)
def test_inputs_keep_their_form(tmp_path: Path, body: str, words: str) -> None:
    """A changed shape is told as a changed value is."""
    with conversation(tmp_path, body) as talk:
        reshaped = talk.run(X).reshaped
    assert bool(reshaped) == bool(words)
    assert words in "".join(reshaped)


def test_the_same_object_holds_other_values(tmp_path: Path) -> None:
    """Who keeps a result by object gives a stale one; who also looks at the version does not."""
    stale = "if self.kept is not None and self.kept[0] is x: return self.kept[1]\n"
    rest = "self.kept = (x, x + 1, x._version)\nreturn self.kept[1].clone()"
    sound = stale.replace("is x:", "is x and self.kept[2] == x._version:")
    for body, right in ((stale + rest, False), (sound + rest, True)):
        with conversation(tmp_path / str(right), body) as talk:
            talk.run(X, same_objects=True)
            done = talk.call(2 * X, same_objects=True)
            assert isinstance(done, CallReply)
            assert torch.equal(talk.value(done.outputs[0]), 2 * X + 1) == right
            other = talk.call(3 * X)
            assert isinstance(other, CallReply)
            assert torch.equal(talk.value(other.outputs[0]), 3 * X + 1)


@pytest.mark.parametrize(
    ("body", "overwrites"),
    [
        ("self.kept = x.clone() if self.kept is None else self.kept.copy_(x)\nreturn self.kept", True),
        ("return x.clone()", False),
    ],
)
def test_results_that_are_overwritten(tmp_path: Path, body: str, overwrites: bool) -> None:
    """One buffer for all results is told; a new one each time is not."""
    with conversation(tmp_path, body) as talk:
        assert not talk.run(X).overwrites
        done = talk.call(2 * X)
        assert isinstance(done, CallReply)
        assert done.overwrites == overwrites
