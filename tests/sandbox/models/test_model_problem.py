"""Problems in the format of KernelBench: sizes, arguments, tolerances, and errors in one line."""

from pathlib import Path

import pytest
import torch

from pipeline.sandbox.models.model_problem import ModelProblem, ProblemError
from tests.verify.harness.problems import SCALED_SOFTMAX, problem_of


def test_sizes_and_what_follows_from_them(tmp_path: Path) -> None:
    """Integers at the top level are sizes; what is derived from them follows when they change."""
    source = """
import torch
a = 4
b, c = 2, 3
d: int = 2**4
e = 6
e = 7
shape = (a, 5)
flag = True
f = -1
g = 1.5
half = a // 2
class Model(torch.nn.Module):
    def forward(self, x): return x
def get_inputs(): return [torch.zeros(half, shape[1], d)]
"""
    problem = problem_of(tmp_path, source)
    sizes = {size.name: size.value for size in problem.sizes}
    assert sizes == {"a": 4, "b": 2, "c": 3, "d": 16, "shape[1]": 5}
    (x,) = problem.variant({"a": 8, "shape[1]": 3}).inputs(0)
    assert tuple(x.shape) == (4, 3, 16)
    assert tuple(problem.declared.inputs(0)[0].shape) == (2, 5, 16)


def test_sizes_that_are_spelled_out(tmp_path: Path) -> None:
    """Equal numbers are one size, in the order of the inputs; small ones, and those elsewhere, are none."""
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.layer = torch.nn.Linear(features, hidden)
        self.steps = 99
    def forward(self, x, y, z): return self.layer(x), y
def get_init_inputs(): return [24, 40]
def get_inputs():
    y = torch.zeros(3, 12)
    return [torch.zeros(12, 24), y, torch.zeros(99)]
"""
    problem = problem_of(tmp_path, source)
    assert [(size.name, size.value) for size in problem.sizes] == [("12", 12), ("24", 24), ("40", 40)]
    changed = problem.variant({"12": 5, "24": 7})
    arguments = changed.init_arguments(0)
    assert arguments == [7, 40]
    assert [tuple(each.shape) for each in changed.inputs(0)] == [(5, 7), (3, 5), (99,)]
    first, _ = changed.model(0, arguments)(*changed.inputs(0))
    assert tuple(first.shape) == (5, 40)


@pytest.mark.parametrize(
    ("lengths", "low", "high"),
    [
        ("torch.randint(80, 121, (8,))", 40, 61),
        ("torch.randint(low=1, high=121, size=(8,))", 1, 61),
        ("torch.randint(121, (8,))", 0, 61),
        ("torch.randint(0, 1000, (8,))", 0, 1000),
    ],
)
def test_lengths_stay_within_their_axis(tmp_path: Path, lengths: str, low: int, high: int) -> None:
    """Of sizes that are spelled out: integers up to one of them follow where it becomes smaller."""
    source = f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x, lengths): return x * (torch.arange(x.shape[1]) < lengths[:, None])
def get_init_inputs(): return []
def get_inputs(): return [torch.zeros(8, 120), {lengths}]
"""
    problem = problem_of(tmp_path, source)
    assert {"8", "120"} <= {size.name for size in problem.sizes} <= {"8", "120", "1000"}
    _, drawn = problem.variant({"8": 999, "120": 60}).inputs(0)
    assert (int(drawn.min()), int(drawn.max())) == pytest.approx((low, high - 1), abs=high // 50)
    _, drawn = problem.variant({"8": 999, "120": 240}).inputs(0)
    assert int(drawn.max()) < (1000 if high == 1000 else 121)


def test_classes_are_no_bound_of_another_size(tmp_path: Path) -> None:
    """A number that stands elsewhere, too, is a size of its own, though it is another one and one."""
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.table = torch.nn.Parameter(torch.ones(classes))
    def forward(self, x, labels): return x[:, 0] * self.table[labels]
def get_init_inputs(): return [13]
def get_inputs(): return [torch.zeros(12, 40), torch.randint(0, 13, (12,))]
"""
    problem = problem_of(tmp_path, source)
    changed = problem.variant({"13": 5})
    assert changed.init_arguments(0) == [5]
    assert int(changed.inputs(0)[1].max()) < 5
    assert int(problem.variant({"12": 999}).inputs(0)[1].max()) == 12


def test_seeds_decide_inputs_and_weights(tmp_path: Path) -> None:
    """Equal seeds give equal bits, other seeds other ones."""
    source = SCALED_SOFTMAX.replace("torch.ones(columns)", "torch.randn(columns)")
    declared = problem_of(tmp_path, source).declared
    assert torch.equal(declared.inputs(1)[0], declared.inputs(1)[0])
    assert not torch.equal(declared.inputs(1)[0], declared.inputs(2)[0])
    first, other = (declared.model(seed, declared.init_arguments(0)) for seed in (1, 2))
    assert not torch.equal(first.weight, other.weight)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [("[x, 2.0]", [2.0]), ("(x, 2.0)", [2.0]), ("x", []), ("{'scale': 2.0, 'x': x}", [2.0])],
)
def test_forms_of_arguments(tmp_path: Path, inputs: str, expected: list) -> None:
    """A list, a tuple, one tensor, names: all become positional arguments."""
    source = f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x, scale=1.0): return x * scale
def get_inputs():
    x = torch.ones(2)
    return {inputs}
"""
    x, *rest = problem_of(tmp_path, source).declared.inputs(0)
    assert isinstance(x, torch.Tensor)
    assert rest == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{'rtol': 1e-2, 'atol': 1e-3, 'reason': 'int8 weights'}", (1e-2, 1e-3, "int8 weights")),
        ("(1e-2, 1e-3)", (1e-2, 1e-3, "")),
        ("(1e-2, 1e-3, 'why')", (1e-2, 1e-3, "why")),
        ("0.01", (0.01, 0.01, "")),
    ],
)
def test_tolerance(tmp_path: Path, given: str, expected: tuple) -> None:
    """A dict, a pair with or without a reason, a number."""
    problem = problem_of(tmp_path, f"{SCALED_SOFTMAX}\ndef get_tolerance(): return {given}\n")
    rule = problem.tolerance
    assert rule is not None
    assert (rule.rtol, rule.atol, rule.reason) == expected


def test_reason_in_the_docstring(tmp_path: Path) -> None:
    """A documented tolerance may say why in its docstring."""
    text = '\ndef get_tolerance():\n    """Weights of four bits."""\n    return (0.1, 0.1)\n'
    rule = problem_of(tmp_path, SCALED_SOFTMAX + text).tolerance
    assert rule is not None
    assert rule.reason == "Weights of four bits."


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import nothing_like_this", "importing it raises ModuleNotFoundError"),
        ("Model = 3\ndef get_inputs(): ...", "no Model, expected class Model"),
        ("def get_tolerance(): return 'much'\n" + SCALED_SOFTMAX, "get_tolerance.*got str, expected rtol"),
        (
            "def get_tolerance(): return -1.0\n" + SCALED_SOFTMAX,
            "rtol is -1.0, expected a number of at least",
        ),
    ],
)
def test_bad_problem(tmp_path: Path, source: str, line: str) -> None:
    """One line that says what and what was expected."""
    with pytest.raises(ProblemError, match=line):
        problem_of(tmp_path, source)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[torch.randn(rows, columns)]", "1 / 0", r"get_inputs\(\) raises ZeroDivisionError: division"),
        ("[torch.randn(rows, columns)]", "'x'", r"get_inputs\(\): got str, expected a list of arguments"),
        ("return [columns]", "return [columns, 3]", r"Model\(\*get_init_inputs\(\)\) raises TypeError"),
    ],
)
def test_bad_arguments(tmp_path: Path, old: str, new: str, line: str) -> None:
    """What a problem's functions do wrong is reported with their name."""
    declared = problem_of(tmp_path, SCALED_SOFTMAX.replace(old, new)).declared
    with pytest.raises(ProblemError, match=line):
        declared.inputs(0)
        declared.model(0, declared.init_arguments(0))


def test_neighbours_can_be_imported(tmp_path: Path) -> None:
    """A problem imports from its own folder."""
    (tmp_path / "a_neighbour.py").write_text("WIDTH = 3")
    problem = problem_of(tmp_path, f"from a_neighbour import WIDTH\n{SCALED_SOFTMAX}")
    assert isinstance(problem, ModelProblem)
    assert problem.declared.module.WIDTH == 3
