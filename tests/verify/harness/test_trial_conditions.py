"""Conditions stay inside what a problem shows, and reach what it allows."""

import itertools
import time
from pathlib import Path

import pytest
import torch

from pipeline.sandbox.models.model_problem import ProblemError
from pipeline.verify.harness import model_cases
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.planning.trial_sizes import SizeBudget, TrialSizes
from pipeline.verify.oracle.input_variations import (
    BEYOND,
    CONCENTRATED,
    CONSTANT_ROWS,
    ENDS,
    LARGER,
    NAMES,
    NO_ZEROS,
    OTHER_ARGUMENTS,
    OTHER_CONSTANTS,
    OTHER_NUMBERS,
    STRIDED,
    VARIATIONS,
    applicable,
    free_inputs,
    vary,
)
from pipeline.verify.oracle.tolerance import deviation
from tests.verify.harness.problems import SCALED_SOFTMAX, SETTINGS, problem_of

LARGE = SizeBudget(elements=1 << 20, operations=1 << 30)
STEPS = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        state = x[:, 0]
        for t in range(x.shape[1]):
            state = 0.5 * state + x[:, t]
        return state
rows = 8
steps = 2000
def get_inputs():
    return [torch.randn(rows, steps)]
def get_init_inputs():
    return []
"""


def samples(make) -> list[dict[str, torch.Tensor]]:
    """One input under two seeds."""
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append({"x": make()})
    return found


def with_get_inputs(text: str) -> str:
    """The usual problem with other inputs."""
    return SCALED_SOFTMAX.replace("[torch.randn(rows, columns)]", text)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("counts everywhere", lambda: torch.full((8, 8), 3.0)),
        ("ones that count", lambda: torch.ones(8, dtype=torch.int64)),
        ("expanded", lambda: torch.ones(1, 8).expand(8, 8)),
        ("integers", lambda: torch.randint(0, 90, (8, 8)).float()),
        ("a permutation", lambda: torch.randperm(64)),
        ("a selection", lambda: torch.randn(8, 9).topk(4).indices),
        ("indices from the end", lambda: torch.randint(-90, 0, (64,))),
        ("mask", lambda: torch.rand(8, 8).round()),
        ("one-hot", lambda: torch.eye(8)[torch.randperm(8)]),
        ("probabilities", lambda: torch.softmax(torch.randn(8, 9), dim=1)),
        ("directions", lambda: torch.nn.functional.normalize(torch.randn(8, 9), dim=1)),
        ("sorted", lambda: torch.randn(64).sort().values),
        ("triangular", lambda: torch.randn(8, 8).tril()),
        ("symmetric", lambda: torch.cov(torch.randn(8, 30))),
        ("sparse", lambda: torch.randn(16, 16).relu()),
        ("repeated", lambda: torch.randn(1, 20).expand(4, 20)),
        ("not finite", lambda: torch.randn(64).log()),
        ("few", lambda: torch.randn(4)),
        ("counts", lambda: torch.tensor([0.5, 2.0])),
        ("weights of a mean", lambda: torch.tensor([0.25, 0.5, 0.25])),
    ],
)
def test_structure_is_kept(name: str, make) -> None:
    """Where values have a structure, or seem to, only the problem itself draws others."""
    assert free_inputs(samples(make)) == {}, name


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda: torch.ones(8, 9).half(), {0.0, 1.0}),
        (lambda: torch.ones(8, 9, dtype=torch.bool), {0.0, 1.0}),
        (lambda: torch.zeros(40, dtype=torch.int64), {0.0, 1.0}),
        (lambda: torch.zeros(2, dtype=torch.int64), {0.0, 1.0}),
        (lambda: torch.ones(1), {0.75}),
        (lambda: torch.zeros(()), {0.5}),
    ],
)
def test_constants(make, values: set[float]) -> None:
    """One value under every seed, as in a mask that keeps all: others of its kind."""
    drawn = samples(make)
    free = free_inputs(drawn)
    assert [name for name in NAMES if name != STRIDED and applicable(name, free, ties=True)] == [
        OTHER_CONSTANTS
    ]
    varied = vary(drawn[0], free, OTHER_CONSTANTS, seed=3)["x"]
    assert varied.dtype is drawn[0]["x"].dtype
    assert set(varied.double().flatten().tolist()) == values


def test_indices() -> None:
    """Half of them become equal: one segment is long then. What ascends still does, between the same ends."""
    for make in (lambda: torch.randint(0, 9, (8, 20)), lambda: torch.randint(0, 90, (200,)).sort().values):
        drawn = samples(make)
        free = free_inputs(drawn)
        assert [name for name in NAMES if name != STRIDED and applicable(name, free, ties=True)] == [
            CONCENTRATED
        ]
        before, after = drawn[0]["x"], vary(drawn[0], free, CONCENTRATED, seed=3)["x"]
        assert int(after.flatten().bincount().max()) >= 0.4 * after.numel()
        assert set(after.unique().tolist()) <= set(before.unique().tolist())
        assert before.flatten()[0] == after.flatten()[0] and before.flatten()[-1] == after.flatten()[-1]
        assert before.dim() > 1 or bool((after.diff() >= 0).all())


def test_constants_without_a_choice_of_values() -> None:
    """A bias of zeros becomes normal; halves become smaller, each by another amount."""
    for make in (lambda: torch.zeros(8, 9), lambda: torch.full((8, 9), 0.5)):
        drawn = samples(make)
        varied = vary(drawn[0], free_inputs(drawn), OTHER_CONSTANTS, seed=3)["x"]
        assert len(varied.unique()) == varied.numel()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("variation", [name for name in VARIATIONS if name not in (LARGER, BEYOND)])
def test_variations_stay_in_range(variation: str, dtype: torch.dtype) -> None:
    """No value beyond the smallest and largest that was shown, in the same type, shape and strides."""
    drawn = samples(lambda: torch.randn(12, 20, dtype=dtype).T)
    free = free_inputs(drawn)
    assert set(free) == {"x"}
    varied = vary(drawn[0], free, variation, seed=3)["x"]
    assert varied.dtype is dtype
    assert varied.stride() == drawn[0]["x"].stride()
    assert free["x"].low <= float(varied.min())
    assert float(varied.max()) <= free["x"].high
    assert not torch.equal(varied, drawn[0]["x"])
    assert torch.equal(varied, vary(drawn[0], free, variation, seed=3)["x"])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.randn(12, 20), True),
        (lambda: torch.randn(12, 20).bfloat16(), True),
        (lambda: torch.randn(12, 20).half(), True),
        (lambda: torch.rand(12, 20) - 0.5, False),
        (lambda: torch.randn(12, 20).abs(), False),
    ],
)
def test_only_numbers_without_ends_become_larger(make, expected: bool) -> None:
    """Not those of an interval, or of one sign."""
    drawn = samples(make)
    free = free_inputs(drawn)
    assert applicable(BEYOND, free, ties=True) == expected
    assert (float(vary(drawn[0], free, BEYOND, seed=3)["x"].float().abs().max()) > 64.0) == expected


def test_views() -> None:
    """The same values; no two inputs of one shape have the same strides, and none has plain ones."""
    drawn = {name: torch.randn(3, 9, 5) for name in "abc"} | {"v": torch.randn(5)}
    views = vary(drawn, {}, STRIDED, seed=3)
    assert all(torch.equal(views[name], each) for name, each in drawn.items())
    strides = {views[name].stride() for name in "abc"} | {drawn["a"].stride()}
    assert len(strides) == 4
    assert views["v"].stride() == (1,)


@pytest.mark.parametrize("positions", [8, 24])
def test_tables(positions: int) -> None:
    """Cosines that are the same for every seed are free, although their first row is whole."""
    angles = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(16) / 16)
    drawn = samples(angles.cos)
    assert set(free_inputs(drawn)) == {"x"}


def test_a_few_numbers_that_no_seed_changes() -> None:
    """Slopes and scales are made smaller alike, with all else permuted; by themselves they are no input."""
    drawn = [{"x": torch.randn(8, 8), "slopes": torch.tensor([[0.0625], [0.0039]])} for _ in range(2)]
    free = free_inputs(drawn)
    assert free["slopes"].kind == "few"
    assert torch.equal(vary(drawn[0], free, "permuted", seed=3)["slopes"], drawn[0]["slopes"] * 0.75)
    assert torch.equal(vary(drawn[0], free, "near ties", seed=3)["slopes"], drawn[0]["slopes"])
    alone = {"slopes": free["slopes"]}
    assert [name for name in VARIATIONS if applicable(name, alone, ties=True)] == ["permuted"]


def test_places_that_are_counted() -> None:
    """Whoever takes the place of a token for its position is right in order only."""
    drawn = [{"positions": torch.arange(37).expand(2, 37).contiguous(), "few": torch.arange(4)}] * 2
    free = free_inputs(drawn)
    assert set(free) == {"positions"}
    varied = vary(drawn[0], free, "permuted", seed=3)["positions"]
    assert not torch.equal(varied, drawn[0]["positions"])
    assert torch.equal(varied.sort(-1).values, drawn[0]["positions"])
    assert torch.equal(vary(drawn[0], free, "near ties", seed=3)["positions"], drawn[0]["positions"])
    assert [name for name in VARIATIONS if applicable(name, free, ties=True)] == ["permuted"]


def test_lengths_that_are_full() -> None:
    """Whoever does not look at them is right only as long as no sequence is padded."""
    x = torch.randn(3, 40, 5)
    drawn = [{"x": x, "lengths": torch.full((3,), 40), "other": torch.full((3,), 41)}] * 2
    free = free_inputs(drawn)
    assert free["lengths"].kind == "lengths"
    assert "other" not in free
    varied = vary(drawn[0], free, "permuted", seed=4)["lengths"]
    assert (int(varied.max()), int(varied.min()) >= 20) == (40, True)
    assert not torch.equal(varied, drawn[0]["lengths"])
    assert torch.equal(vary(drawn[0], free, "near ties", seed=4)["lengths"], drawn[0]["lengths"])


def test_padding() -> None:
    """Whole indices of the first axis are zero, and not all of them."""
    drawn = samples(lambda: torch.randn(9, 4, 5))
    varied = vary(drawn[0], free_inputs(drawn), "zero rows", seed=3)["x"]
    assert sorted(varied.abs().sum((1, 2)).eq(0.0).tolist()) == [False] * 7 + [True] * 2
    bounded = samples(lambda: torch.rand(9, 5) + 1.0)
    assert not applicable("zero rows", free_inputs(bounded), ties=True)


def test_signs_are_kept() -> None:
    """Values of one sign get no other sign."""
    drawn = samples(lambda: torch.rand(12, 20) + 0.5)
    free = free_inputs(drawn)
    assert not applicable("negative", free, ties=True)
    for variation in VARIATIONS:
        assert float(vary(drawn[0], free, variation, seed=3)["x"].min()) >= free["x"].low >= 0.5


def test_signs_of_integers() -> None:
    """Those of both signs may all be negative; nothing else of them is varied."""
    drawn = samples(lambda: torch.randint(-(1 << 60), 1 << 60, (12, 20)))
    free = free_inputs(drawn)
    assert [name for name in VARIATIONS if applicable(name, free, ties=True)] == ["negative"]
    assert torch.equal(vary(drawn[0], free, "negative", seed=3)["x"], -drawn[0]["x"].abs())


def test_bounds_of_each_other_are_kept() -> None:
    """Two inputs of which one is never above the other are left alone."""
    drawn = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        low = torch.randn(12, 20)
        drawn.append({"low": low, "high": low + torch.rand(12, 20), "x": torch.randn(12, 20)})
    assert set(free_inputs(drawn)) == {"x"}


def test_types_that_cannot_be_compared() -> None:
    """Whether one of two inputs is never above the other is seen for float8 as well."""
    drawn = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        low, more = torch.randn(12, 20), torch.rand(12, 20) / 2
        kept = {"low": low, "high": low + more, "x": torch.randn(12, 20)}
        drawn.append({name: each.to(torch.float8_e4m3fn) for name, each in kept.items()})
    assert set(free_inputs(drawn)) == {"x"}


def test_aligned_sizes(tmp_path: Path) -> None:
    """Features that a layer puts out are sizes as well; a number that is too small is a parameter."""
    source = """
import torch
M, K, N, WIDTH = 64, 100, 128, 7
class Model(torch.nn.Module):
    def __init__(self, k, n, width):
        super().__init__()
        self.linear, self.width = torch.nn.Linear(k, n), torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        return self.linear(x) * self.width.sum()
def get_inputs():
    return [torch.randn(M, K)]
def get_init_inputs():
    return [K, N, WIDTH]
"""
    others = list(TrialSizes(problem_of(tmp_path, source), LARGE).others())
    for sizes in ({"M": 32, "K": 96, "N": 96}, {"M": 48, "K": 80, "N": 112}, {"M": 56, "K": 88, "N": 120}):
        assert sizes in others
    assert {"M": 61, "K": 97, "N": 127} in others
    assert not any("WIDTH" in sizes for sizes in others)


def test_sizes_on_which_model_fits_by_chance(tmp_path: Path) -> None:
    """A slice of one element is broadcast where it was as long as the other operand."""
    source = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, table):
        half = table.shape[1]
        return torch.cat([x[:, :half] * table, x[:, half:] * table], 1)
def get_inputs():
    return [torch.randn(64, 34), torch.randn(1, 17)]
def get_init_inputs():
    return []
"""
    others = list(TrialSizes(problem_of(tmp_path, source), LARGE).others())
    assert {"64"} == {name for sizes in others for name in sizes}


def test_sizes_follow_the_inputs(tmp_path: Path) -> None:
    """Only names that the shapes of the inputs follow are sizes, and none is ever above what is declared."""
    source = SCALED_SOFTMAX.replace("rows = 24", "rows = 24\nclasses = 7\naxis = 1")
    workloads = TrialSizes(problem_of(tmp_path, source), LARGE)
    assert workloads.base == {}
    others = list(workloads.others())
    assert {name for sizes in others for name in sizes} == {"rows", "columns"}
    assert all(1 <= sizes.get("rows", 1) <= 24 for sizes in others)
    assert {"rows": 17, "columns": 59} in others  # primes
    assert {"columns": 65} in others  # a power of two and one
    assert {"columns": 1} in others
    assert {} not in others


def test_large_sizes_are_reduced(tmp_path: Path) -> None:
    """Far beyond the memory of any machine, and still judged: nothing of that size is ever made."""
    source = SCALED_SOFTMAX.replace("rows = 24", "rows = 1 << 22").replace("2 * 40", "1 << 22")
    problem = problem_of(tmp_path, source)
    workloads = TrialSizes(problem, SizeBudget(elements=4096, operations=1 << 30))
    found = workloads.extent(workloads.base)
    assert found is not None
    assert found.elements <= 4096
    assert workloads.base["rows"] >= 3
    assert any(sizes["columns"] > 1000 for sizes in workloads.others())  # one axis long, the other short


def test_indices_of_the_declared_sizes(tmp_path: Path) -> None:
    """They are values, without which sizes are chosen: names that they do not need are reduced."""
    source = """
import torch
rows, columns = 1024, 1024
class Model(torch.nn.Module):
    def forward(self, x, blocks):
        return 2 * x.unflatten(0, (-1, 256))[blocks]
def get_inputs():
    return [torch.randn(rows, columns), torch.tensor([3, 0])]
def get_init_inputs():
    return []
"""
    base = ModelCaseSet(problem_of(tmp_path, source), SETTINGS).plans[0].condition.sizes
    assert set(base) == {"columns"}


def test_a_loop_over_many_steps_is_shortened(tmp_path: Path) -> None:
    """Expected values take a thousand times an operator's time: it is the steps that are reduced."""
    workloads = TrialSizes(problem_of(tmp_path, STEPS), LARGE)
    assert workloads.loops
    assert set(workloads.base) == {"steps"}
    assert 20 <= workloads.base["steps"] <= 500
    assert all(sizes["steps"] <= 500 for sizes in workloads.others())
    fixed = STEPS.replace("range(x.shape[1])", "range(2000)").replace("x[:, t]", "x[:, 0]")
    assert TrialSizes(problem_of(tmp_path, fixed), LARGE).base == {}


def test_impossible_sizes_are_left_out(tmp_path: Path) -> None:
    """A size on which Model raises is nobody's duty."""
    source = SCALED_SOFTMAX.replace("self.weight =", "assert columns % 16 == 0\n        self.weight =")
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    sizes = [plan.condition.sizes for plan in case_set.plans]
    assert all(each.get("columns", 80) % 16 == 0 for each in sizes)
    assert any(each.get("rows", 24) != 24 for each in sizes)


def test_powers_of_two(tmp_path: Path) -> None:
    """Where `Model` takes nothing near, a half and a quarter: an odd exponent may need another scale."""
    source = SCALED_SOFTMAX.replace("2 * 40", "256").replace(
        "self.weight =", "assert columns & (columns - 1) == 0\n        self.weight ="
    )
    sizes = list(TrialSizes(problem_of(tmp_path, source), LARGE).others())
    assert {each.get("columns", 256) for each in sizes} >= {256, 128, 64}


def kinds(source: str, folder: Path) -> list[str]:
    """Kinds of the conditions of a problem."""
    return [plan.condition.kind for plan in ModelCaseSet(problem_of(folder, source), SETTINGS).plans]


def test_as_few_rows_as_are_chosen(tmp_path: Path) -> None:
    """Where one row is not enough, the smallest number that is belongs to the sizes."""
    source = (
        "import torch\nROWS = 500\n\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x.topk(8, dim=0)\n\n"
        "def get_inputs():\n    return [torch.randn(ROWS, 16)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    sizes = list(TrialSizes(problem_of(tmp_path, source), LARGE).others())
    assert {"ROWS": 8} in sizes
    assert min(each.get("ROWS", 500) for each in sizes) == 8


def test_outputs_of_8_bits(tmp_path: Path) -> None:
    """PyTorch converts them, and cannot compare them."""
    source = (
        "import torch\nROWS = 16\n\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        scale = x.abs().amax(1, keepdim=True) / 448\n"
        "        return (x / scale).to(torch.float8_e4m3fn), scale\n\n"
        "def get_inputs():\n    return [torch.randn(ROWS, 16)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    assert {plan.condition.kind for plan in case_set.plans} >= {"base", "values", "sizes"}


def test_all_kinds(tmp_path: Path) -> None:
    """Draws, other values, other sizes, other weights."""
    found = kinds(SCALED_SOFTMAX, tmp_path)
    assert found[:2] == ["base", "base"]
    assert set(found) == {"base", "values", "sizes", "weights"}


def test_other_weights_come_first_where_time_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bias that is constructed as 0 shows in no other condition."""
    case_set = ModelCaseSet(problem_of(tmp_path, SCALED_SOFTMAX), SETTINGS)
    clock = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(model_cases, "PREPARE_SECONDS", 5)
    case_set.prepare()
    left = {plan.condition.kind for plan in case_set.plans if case_set.case(plan) is None}
    plain = [
        each for each in case_set.plans if each.condition.kind == "weights" and not each.condition.variation
    ]
    assert left == {"values", "sizes", "weights"}
    assert None not in [case_set.case(plan) for plan in plain]


def test_declared_sizes_as_far_as_memory_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are large, `Model`'s own result is kept once; where they are too large, it is said why."""
    source = SCALED_SOFTMAX + "\nrows = 1 << 17\n"
    monkeypatch.setattr(model_cases, "LARGE", 1 << 20)
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    case_set.prepare()
    (full,) = (plan for plan in case_set.plans if plan.condition.kind == "full")
    case = case_set.case(full)
    assert case is not None and case.expected[0].reference.data_ptr() == full.values[0].data_ptr()
    assert not case_set.too_large
    monkeypatch.setattr(model_cases, "MEMORY_SHARE", 1e-6)
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    assert "full" not in {plan.condition.kind for plan in case_set.plans}
    assert "GiB" in case_set.too_large


@pytest.mark.parametrize(("shift", "right"), [(0.0, True), (0.01, False)])
def test_declared_sizes_of_which_only_rounding_is_left(tmp_path: Path, shift: float, right: bool) -> None:
    """A mean of what has none: PyTorch's own error is no value that a candidate must have."""
    source = SCALED_SOFTMAX.replace(
        "torch.softmax(x, dim=1)", "x.sub(x.mean(1, keepdim=True)).mean(1, keepdim=True)"
    )
    case_set = ModelCaseSet(problem_of(tmp_path, source + "\nrows = 1 << 17\n"), SETTINGS)
    case_set.prepare()
    (full,) = (plan for plan in case_set.plans if plan.condition.kind == "full")
    case = case_set.case(full)
    assert case is not None
    assert deviation(torch.full_like(full.values[0], shift), case.expected[0]).passed == right


@pytest.mark.parametrize("tolerance", ["", "\ndef get_tolerance(): return (0.1, 0.1)\n"])
def test_an_absolute_tolerance_is_one_for_values_of_the_size_shown(tmp_path: Path, tolerance: str) -> None:
    """Larger ones are tried where bounds are relative to them."""
    case_set = ModelCaseSet(problem_of(tmp_path, SCALED_SOFTMAX + tolerance), SETTINGS)
    tried = {plan.condition.variation for plan in case_set.plans}
    assert (LARGER in tried) == (not tolerance)


def test_groups_stand_for_other_values(tmp_path: Path) -> None:
    """A problem that says what its operator must bear is asked for that, and for no values of ours."""
    groups = """
def get_input_groups():
    return [[torch.full((3, columns), float("nan"))], [torch.randn(columns, 5).T]]
"""
    case_set = ModelCaseSet(problem_of(tmp_path, SCALED_SOFTMAX + groups), SETTINGS)
    plans = {plan.condition.kind: plan for plan in case_set.plans}
    assert set(plans) == {"base", "group", "sizes", "weights"}
    strided = [plan for plan in case_set.plans if plan.condition.group == 1]
    assert strided[0].encoded.tensors["input 0"].stride() == (1, 5)


def test_constant_weights_get_other_values(tmp_path: Path) -> None:
    """Weights of ones hide a kernel that leaves them out, and small errors; the change is reported."""
    case_set = ModelCaseSet(problem_of(tmp_path, SCALED_SOFTMAX), SETTINGS)
    changed = [plan for plan in case_set.plans if plan.changed]
    found = [(plan.changed, plan.condition.variation) for plan in changed if plan.condition.kind == "weights"]
    assert found == [(("weight",), None)] * 2 + [(("weight",), CONSTANT_ROWS)] * 2
    assert all(len(plan.state["weight"].unique()) > 2 for plan in changed)
    sizes = [plan for plan in case_set.plans if plan.condition.kind == "sizes"]
    assert [bool(plan.changed) for plan in sizes[:4]] == [False, True] * 2
    assert ["other weights" in plan.condition.label for plan in sizes[:4]] == [False, True] * 2


def test_sizes_of_a_model_without_weights(tmp_path: Path) -> None:
    """No condition claims other weights."""
    source = SCALED_SOFTMAX.replace("torch.nn.Parameter(torch.ones(columns))", "1.0")
    assert source != SCALED_SOFTMAX
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    sizes = [plan.condition for plan in case_set.plans if plan.condition.kind == "sizes"]
    assert len(sizes) > 4
    assert {each.constants for each in sizes} == {"as constructed"}


def test_a_batch_of_one_is_tried(tmp_path: Path) -> None:
    """However many names there are."""
    source = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))
batch, channels, height, width = 16, 32, 64, 64
def get_inputs():
    return [torch.randn(batch, channels, height, width)]
def get_init_inputs():
    return []
"""
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    assert 1 in {plan.condition.sizes.get("batch") for plan in case_set.plans}


def test_tables_and_zeros_get_other_values(tmp_path: Path) -> None:
    """What every seed constructs alike could be copied at construction; a bias may be negative everywhere."""
    parameters = """super().__init__()
        self.table = torch.nn.Parameter(torch.arange(1.0, 1.0 + columns))
        self.frozen = torch.nn.Parameter(torch.arange(1.0, 1.0 + columns), requires_grad=False)
        self.bias = torch.nn.Parameter(torch.zeros(columns))
"""
    source = SCALED_SOFTMAX.replace("super().__init__()", parameters, 1)
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    by_constants = {plan.condition.constants: plan for plan in case_set.plans}
    constructed = by_constants["as constructed"].state
    assert set(by_constants["random"].changed) == {"weight", "table", "bias"}
    assert by_constants["negative"].changed == ("bias",)
    assert bool((by_constants["negative"].state["bias"] <= -4.0).all())
    assert set(by_constants["signed"].changed) == {"weight", "table", "bias"}
    assert set(by_constants["signed"].state["weight"].sign().tolist()) == {-1.0, 1.0}
    assert bool((by_constants["random"].state["table"] > 0.0).all())
    assert torch.equal(by_constants["random"].state["frozen"], constructed["frozen"])


def test_only_finite_references(tmp_path: Path) -> None:
    """Derived conditions on which Model gives NaN or an infinity are left out; its own draws stay."""
    source = SCALED_SOFTMAX.replace("torch.softmax(x, dim=1)", "x.std(dim=1, keepdim=True).log()")
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    case_set.prepare()
    assert all(plan.condition.sizes.get("columns", 80) > 1 for plan in case_set.plans)
    assert all(plan.condition.variation != "constant rows" for plan in case_set.plans)


def test_choices_among_equal_elements(tmp_path: Path) -> None:
    """Inputs with equal elements are left out where `Model` chooses one of them, and only there."""

    def tried(source: str) -> set[str | None]:
        return {
            plan.condition.variation for plan in ModelCaseSet(problem_of(tmp_path, source), SETTINGS).plans
        }

    assert {CONSTANT_ROWS, ENDS} <= tried(SCALED_SOFTMAX)
    kept = "torch.zeros_like(x).scatter(1, x.topk(2, dim=1).indices, 1.0) * x"
    chosen = tried(SCALED_SOFTMAX.replace("torch.softmax(x, dim=1)", kept))
    assert chosen & {"permuted", "negative"}
    assert not chosen & {CONSTANT_ROWS, ENDS}


def test_numbers_get_other_values(tmp_path: Path) -> None:
    """Arguments that no seed changes; integers are counts, and what makes the model random is left out."""
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope
    def forward(self, x, scale, steps, dropout, offset):
        y = torch.nn.functional.leaky_relu(x, self.slope)
        return torch.dropout(y, dropout, train=True) * scale * steps + offset[0]
rows, columns = 12, 40
def get_inputs():
    return [torch.randn(rows, columns), 1.0, 2, 0.0, [0.1]]
def get_init_inputs():
    return [0.01]
"""
    case_set = ModelCaseSet(problem_of(tmp_path, source), SETTINGS)
    case_set.prepare()
    plans = {plan.condition.variation: plan for plan in case_set.plans}
    assert plans[OTHER_NUMBERS].arguments[1:] == [0.75, 2, 0.0, [0.1 * 0.75]]
    assert plans[OTHER_ARGUMENTS].initial.decode() == [0.01 * 0.75]
    assert case_set.case(plans[OTHER_NUMBERS]) is not None
    assert plans[NO_ZEROS].arguments[1:] == [1.0, 2, 0.5, [0.1]]
    assert case_set.case(plans[NO_ZEROS]) is None


def test_random_model(tmp_path: Path) -> None:
    """A model that draws random numbers has no right answer, and says so."""
    case_set = ModelCaseSet(
        problem_of(tmp_path, SCALED_SOFTMAX.replace("dim=1)", "dim=1) * torch.rand_like(x)")), SETTINGS
    )
    case_set.prepare()
    with pytest.raises(ProblemError, match="Model is random"):
        case_set.case(case_set.plans[0])


def test_endless_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem that does not end is stopped."""
    monkeypatch.setattr("pipeline.verify.harness.model_cases.PROBLEM_SECONDS", 1.0)
    source = SCALED_SOFTMAX.replace("def get_inputs():", "def get_inputs():\n    while True: pass")
    with pytest.raises(ProblemError, match="takes longer than 1 s"):
        ModelCaseSet(problem_of(tmp_path, source), SETTINGS)


def test_inputs_that_do_not_fit(tmp_path: Path) -> None:
    """The line names the cause."""
    problem = problem_of(tmp_path, with_get_inputs("[torch.randn(3), 4]"))
    with pytest.raises(ProblemError, match=r"get_inputs\(\) does not fit Model: forward raises TypeError"):
        ModelCaseSet(problem, SETTINGS)


def test_weak_problem(tmp_path: Path) -> None:
    """Trivial answers that would pass are known for each case."""
    case_set = ModelCaseSet(problem_of(tmp_path, SCALED_SOFTMAX.replace("dim=1)", "dim=1) * 0")), SETTINGS)
    case_set.prepare()
    case = case_set.case(case_set.plans[0])
    assert case is not None
    assert "zeros" in case.trivial


BUFFERS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, 4.0))

    def forward(self, x):
        return x * self.slopes

rows = 64

def get_inputs():
    return [torch.randn(rows, 3)]
"""


def test_a_buffer_is_no_weight(tmp_path: Path) -> None:
    """No seed changes it, so there is no note on other initial weights."""
    notes = ModelCaseSet(problem_of(tmp_path, BUFFERS), SETTINGS).notes
    assert not [note for note in notes if "other initial weights" in note]


WEAK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True)

rows, columns = 8192, 200000

def get_inputs():
    return [torch.rand(rows, columns)]
"""


@pytest.mark.slow
def test_weak_on_the_declared_sizes(tmp_path: Path) -> None:
    """Zeros pass there and not on the reduced sizes; only rows are left out to see it."""
    notes = ModelCaseSet(problem_of(tmp_path, WEAK), SETTINGS).notes
    (weak,) = [note for note in notes if note.startswith("weakly_checked: ")]
    assert "zeros would pass a tolerance of 0.01 on rows=64" in weak
    assert not [note for note in notes if note.startswith("degenerate problem: insensitive: other")]


def test_what_needs_values_to_run_is_not_tried_near_the_declared_sizes(tmp_path: Path) -> None:
    """It may take any time there."""
    source = WEAK.replace("        return", "        assert x.sum().item() > 0\n        return")
    workloads = TrialSizes(problem_of(tmp_path, source), SizeBudget(elements=1 << 15, operations=1 << 20))
    assert workloads.nearest(LARGE) is None
