"""The oracle accepts right ways to compute a function, rejects small mistakes, and copes with any code."""

import logging
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pipeline.records.configuration.stage_settings import Distribution
from pipeline.verify.oracle.random_inputs import DISTRIBUTIONS
from pipeline.verify.oracle.rounding.expectation import RandomReference, declared, expectation
from pipeline.verify.oracle.rounding.wrapped_run import output_tensors
from pipeline.verify.oracle.tolerance import Expected, deviation
from tests.selection import slow_unless
from tests.verify.oracle.rounding_cases import CASES, normal

TIDY = 0.6
"""Share of the bound below which right ways stay: far from rejection."""


def shares(
    expected: Expected, ways: dict[str, Callable[..., torch.Tensor]], inputs: list[torch.Tensor]
) -> dict[str, float]:
    """Share of the bound by way; printed, so that a failure shows the table."""
    found = {name: deviation(way(*inputs), expected).share for name, way in ways.items()}
    for name, share in found.items():
        print(f"{share:12.3g}  {name}")
    return found


@pytest.mark.parametrize(
    "dtype",
    slow_unless(torch.float32.__eq__, [torch.float32, torch.float16, torch.bfloat16]),
    ids=str,
)
@pytest.mark.parametrize("name", CASES)
def test_right_and_wrong_ways(name: str, dtype: torch.dtype) -> None:
    """Other orders and formulas pass by far; wrong constants, types and missing terms fail."""
    case = CASES[name]
    inputs = [item.to(dtype) for item in case.inputs]
    (expected,) = expectation(case.function, inputs)
    right = shares(expected, case.right, inputs)
    wrong = shares(expected, case.wrong if dtype == torch.float32 else case.wrong_half, inputs)
    assert max(right.values()) < TIDY, right
    assert min(wrong.values()) > 1, wrong


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
@pytest.mark.parametrize("name", ["layer_norm", "gelu", "matmul 512", "attention", "cross_entropy"])
def test_bounds_do_not_depend_on_luck(name: str, seed: int) -> None:
    """Other random errors give other bounds, not other verdicts."""
    case = CASES[name]
    (expected,) = expectation(case.function, case.inputs, seed=seed)
    assert max(shares(expected, case.right, list(case.inputs)).values()) < TIDY
    assert min(shares(expected, case.wrong, list(case.inputs)).values()) > 1


@pytest.mark.parametrize("distribution", ["small", "one_signed", "ties"])
@pytest.mark.parametrize(
    "name", ["layer_norm", "batch_norm", "matmul 512", "mse_loss", "std", "mean", "softmax wide"]
)
def test_other_data(name: str, distribution: Distribution) -> None:
    """Small numbers meet large sums, and few different terms repeat: rounding errors do not cancel then."""
    case = CASES[name]
    generator = torch.Generator().manual_seed(7)
    inputs = [DISTRIBUTIONS[distribution](tuple(item.shape), generator) for item in case.inputs]
    (expected,) = expectation(case.function, inputs)
    assert max(shares(expected, case.right, inputs).values()) < 0.8


@pytest.mark.parametrize("size", [512, 4096])
def test_constants(size: int) -> None:
    """Equal terms drift: each addition rounds the same way."""
    inputs = [torch.full((16, size), 0.3), torch.full((size, 16), 0.7)]
    (expected,) = expectation(torch.matmul, inputs)
    case = CASES["matmul 512"]
    assert max(shares(expected, case.right, inputs).values()) < 0.8
    assert not deviation(case.wrong["tf32"](*inputs), expected).passed


@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("fused", [False, True])
def test_sums_may_begin_with_the_bias(scale: float, fused: bool) -> None:
    """A product whose accumulators start at the bias rounds it once per term, whichever way Model adds it."""
    x, weight, bias = torch.randn(16, 2048) * scale, torch.rand(32, 2048) / 45 - 0.011, torch.randn(32)

    def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, weight, bias) if fused else x @ weight.t() + bias

    running = bias.expand(16, 32).clone()
    for term in range(2048):
        running += x[:, term, None] * weight[:, term]
    (expected,) = expectation(linear, (x, weight, bias))
    assert deviation(running, expected).share < 0.9
    assert deviation(running * (1 + 1e-4), expected).share > 1


def test_equal_seeds_give_equal_bounds() -> None:
    """Nothing depends on time or on the global random state."""
    x = normal(8, 100)
    first, second = (expectation(lambda x: x.softmax(-1), (x,), seed=7)[0] for _ in range(2))
    assert torch.equal(first.bound, second.bound)
    assert not torch.equal(first.bound, expectation(lambda x: x.softmax(-1), (x,), seed=8)[0].bound)


def test_global_random_state_is_left_alone() -> None:
    """Who seeds a test gets the same numbers with and without the oracle."""
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    expectation(lambda x: x.exp(), (normal(4, 4),))
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("seed", range(3))
def test_few_samples_suffice(seed: int) -> None:
    """Large work is sampled less often, and right ways still pass."""
    case = CASES["softmax"]
    (expected,) = expectation(case.function, case.inputs, samples=6, seed=seed)
    assert max(shares(expected, case.right, list(case.inputs)).values()) < 1
    assert min(shares(expected, case.wrong, list(case.inputs)).values()) > 1


MODULES: dict[str, tuple[Callable[..., object], tuple[object, ...]]] = {
    "mlp": (
        nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10), nn.LogSoftmax(-1)),
        (normal(8, 64),),
    ),
    "relu in place": (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        (normal(2, 3, 8, 8),),
    ),
    "batch norm": (nn.BatchNorm2d(4), (normal(3, 4, 5, 5),)),
    "batch norm in eval": (nn.BatchNorm2d(4).eval(), (normal(3, 4, 5, 5),)),
    "instance norm": (nn.InstanceNorm2d(4), (normal(3, 4, 8, 8),)),
    "lstm": (nn.LSTM(8, 8), (normal(5, 2, 8),)),
    "gru": (nn.GRU(8, 8), (normal(5, 2, 8),)),
    "attention layer": (nn.MultiheadAttention(16, 2, batch_first=True).eval(), (normal(2, 5, 16),) * 3),
    "encoder": (nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0).eval(), (normal(5, 2, 16),)),
    "embedding": (nn.Embedding(10, 4), (torch.tensor([1, 2, 1]),)),
    "embedding bag": (nn.EmbeddingBag(10, 4), (torch.tensor([[1, 2, 1]]),)),
    "dropout in eval": (nn.Dropout().eval(), (normal(4, 4),)),
    "causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (normal(2, 2, 16, 8),)),
    "losses": (
        lambda x, y: (F.smooth_l1_loss(x, y), F.huber_loss(x, y), F.kl_div(x.log_softmax(1), y.softmax(1))),
        (normal(9, 30), normal(9, 30, seed=1)),
    ),
    "in place": (lambda x: (x + 1).mul_(3).add_(2).relu_(), (normal(9, 30),)),
    "power in place": (lambda x: x.abs().pow_(1.5).clamp_(max=2.0), (normal(9, 30),)),
    "writes to a row": (
        lambda x: torch.zeros(5, 5).index_add_(0, torch.tensor([0, 0, 2]), x[:3]),
        (normal(5, 5),),
    ),
    "factories": (
        lambda x: x * torch.linspace(0, 1, 30) + torch.arange(30) / 7 + torch.tensor(0.1),
        (normal(9, 30),),
    ),
    "converts": (lambda x: (x.half() * 2).float() + x.to(torch.bfloat16).double().sum(), (normal(9, 30),)),
    "nested": (lambda x: {"a": x * 2, "b": [x.sum(), 3.0, None]}, (normal(9, 30),)),
    "reads a number": (lambda x: x * x.mean().item() if x.sum() > -1e9 else x, (normal(9, 30),)),
    "fft": (lambda x: torch.fft.rfft(x).abs(), (normal(4, 32),)),
    "complex": (torch.fft.fft, (normal(4, 32),)),
    "inverse": (lambda x: torch.linalg.inv(x @ x.t() + 5 * torch.eye(20)), (normal(20, 30),)),
    "norms": (lambda x: (x.norm(), x.norm(dim=1), x.norm(p=1, dim=1), x.norm(p="fro")), (normal(20, 30),)),
    "vmap": (torch.vmap(lambda row: row.softmax(0)), (normal(4, 9),)),
    "transposed": (lambda x: x.t().softmax(-1), (normal(9, 30).t(),)),
    "numpy": (lambda x: torch.from_numpy(x.detach().numpy() * 2), (normal(4, 4),)),
    "float64": (lambda x: x.softmax(-1), (normal(4, 40).double(),)),
    "keyword lists": (lambda items: items["x"] + items["y"][0], ({"x": normal(3, 3), "y": [normal(3, 3)]},)),
}


@pytest.mark.parametrize("name", MODULES)
def test_any_code_is_its_own_right_answer(name: str) -> None:
    """Whatever PyTorch computes in its own dtypes passes, its shapes and dtypes included."""
    function, arguments = MODULES[name]
    expected = expectation(function, arguments)
    with torch.no_grad():
        outputs = output_tensors(function(*arguments))
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        assert deviation(output, wanted).share < 1
        assert wanted.dtype in str(output.dtype.to_real() if output.is_complex() else output.dtype)
        if wanted.reference.abs().max() > 0:
            assert not deviation(output * 1.5, wanted).passed


def test_operations_that_wrappers_refuse_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Code that leaves PyTorch is analysed as a whole, and the log says so."""
    caplog.set_level(logging.INFO, "pipeline.verify.oracle.rounding.expectation")
    expectation(*MODULES["numpy"])
    assert "analysed as a whole" in caplog.text


def test_errors_of_the_function_itself_are_raised() -> None:
    """A reference that fails has no expected values."""
    with pytest.raises(RuntimeError, match="must match"):
        expectation(lambda x: x + torch.ones(7), (normal(3, 3),))


def test_state_is_not_changed() -> None:
    """Running statistics belong to the caller's module, parameters to nobody else."""
    module = nn.BatchNorm1d(4)
    before = {name: item.clone() for name, item in module.state_dict().items()}
    arguments = (normal(9, 4),)
    kept = arguments[0].clone()
    expectation(module, arguments)
    assert all(torch.equal(item, before[name]) for name, item in module.state_dict().items())
    assert torch.equal(arguments[0], kept)


@pytest.mark.parametrize(
    "function",
    [
        nn.Dropout(0.5),
        lambda x: x + torch.rand(4, 4),
        lambda x: x + torch.randn_like(x),
        lambda x: x * torch.zeros(4, 4).bernoulli_(),
        lambda x: x * random.random(),
        lambda x: x[torch.randperm(4)],
    ],
)
def test_random_functions_have_no_reference(function: Callable[..., torch.Tensor]) -> None:
    """Dropout in training has no single right answer."""
    with pytest.raises(RandomReference, match="no answer is the right one"):
        expectation(function, (normal(4, 4),))


def test_seeded_functions_are_not_random() -> None:
    """Numbers that are always the same are constants."""

    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return x + torch.rand(4, 4)

    x = normal(4, 4)
    (expected,) = expectation(seeded, (x,))
    assert deviation(seeded(x), expected).passed


def test_special_values() -> None:
    """NaN and infinities are part of the answer."""
    x = torch.tensor([[1.0, math.nan, 2.0], [1.0, -math.inf, 2.0], [0.0, 1.0, math.inf]])
    (expected,) = expectation(lambda x: x.softmax(-1), (x,))
    assert deviation(x.softmax(-1), expected).passed
    assert not deviation(torch.nan_to_num(x.softmax(-1)), expected).passed


def test_masked_attention_with_an_empty_row() -> None:
    """Scores of minus infinity make no noise."""
    x = normal(6, 6).masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf)
    (expected,) = expectation(lambda x: x.softmax(-1), (x,))
    assert deviation(x.softmax(-1), expected).share < TIDY
    assert not deviation(normal(6, 6).softmax(-1), expected).passed


def test_indices_must_be_equal() -> None:
    """Where nothing is near, one index is right."""
    x = normal(50, 30)
    values, indices = expectation(torch.sort, (x,))
    found = torch.sort(x)
    assert deviation(found.values, values).passed
    assert deviation(found.indices, indices).share == 0
    assert not deviation(found.indices.flip(-1), indices).passed
    assert not deviation(found.indices + (torch.arange(30) == 3), indices).passed


def test_ties_within_rounding() -> None:
    """The larger of two sums that differ by less than their errors may be either."""
    x = torch.stack([normal(5, 64), normal(5, 64)], 1)
    x = x + torch.tensor([0.0, 1e-9])[:, None]
    x = torch.stack([x[:, 0], x[:, 0].flip(-1), x[:, 0] - 9.0], 1) * 1.1
    (expected,) = expectation(lambda x: x.sum(-1).argmax(-1), (x,))
    assert deviation(torch.zeros(5, dtype=torch.int64), expected).passed
    assert deviation(torch.ones(5, dtype=torch.int64), expected).passed
    assert not deviation(torch.full((5,), 2), expected).passed


def test_equal_elements_may_be_taken_in_any_order() -> None:
    """topk of equal values has no first one."""
    (_, indices) = expectation(lambda x: torch.topk(x, 1), (torch.ones(200, 2),))
    assert deviation(torch.zeros(200, 1, dtype=torch.int64), indices).passed
    assert deviation(torch.ones(200, 1, dtype=torch.int64), indices).passed
    assert not deviation(torch.full((200, 1), 2), indices).passed


def test_discontinuities_widen_themselves() -> None:
    """A sum at a half may be rounded up or down, one in between may not."""
    x = torch.cat([torch.full((1, 10), 0.05), torch.full((1, 10), 0.12)])
    (expected,) = expectation(lambda x: torch.round(x.sum(-1) * 1.1 - 0.05), (x,))
    assert deviation(torch.tensor([0.0, 1.0]), expected).passed
    assert deviation(torch.tensor([1.0, 1.0]), expected).passed
    assert not deviation(torch.tensor([0.0, 2.0]), expected).passed


def test_copies_are_exact() -> None:
    """What is only moved may not change, not even by one unit in the last place."""
    x = normal(30, 30) + 3
    (expected,) = expectation(lambda x: x.t().contiguous().relu(), (x,))
    assert deviation(x.t(), expected).share == 0
    assert not deviation(x.t() * (1 + 2**-21), expected).passed


def test_systematic_errors_show_overall() -> None:
    """An error of six units everywhere is within almost every bound and beyond the one over all elements."""
    x = normal(100, 1000).abs()
    (expected,) = expectation(lambda x: x * 1.7 + 0.3, (x,))
    right = x * 1.7 + 0.3
    found = deviation(right * (1 + 6 * 2**-24), expected)
    assert found.overall > 1
    assert found.share >= found.overall
    assert found.wrong < 10
    assert deviation(right, expected).overall < 0.3


def test_declared_tolerance_widens() -> None:
    """A documented tolerance counts where it is wider, and only with its reason."""
    x = normal(20, 20)
    (expected,) = expectation(lambda x: x.exp(), (x,))
    low = x.exp() * 1.004
    assert not deviation(low, expected).passed
    wider = declared(expected, rtol=0.005, atol=0.0, reason="weights have four bits")
    assert deviation(low, wider).passed
    assert not deviation(x.exp() * 1.02, wider).passed
    assert bool((wider.bound >= expected.bound).all())
    narrower = declared(expected, rtol=0.0, atol=0.0, reason="none is needed")
    assert torch.equal(narrower.bound, expected.bound)


def test_declared_tolerance_needs_a_reason() -> None:
    """Nothing is widened silently, nor without end."""
    (expected,) = expectation(lambda x: x.exp(), (normal(2, 2),))
    with pytest.raises(ValueError, match="needs its reason"):
        declared(expected, rtol=0.1, atol=0.0, reason=" ")
    with pytest.raises(ValueError, match="finite"):
        declared(expected, rtol=math.inf, atol=0.0, reason="anything goes")


def test_small_outputs_are_not_excused() -> None:
    """Zeros fail where the outputs are tiny: the bound is relative to them."""
    x = normal(20, 20) * 1e-6
    (expected,) = expectation(lambda x: x * x, (x,))
    assert not deviation(torch.zeros(20, 20), expected).passed


def test_infinities_say_nothing(recwarn: pytest.WarningsRecorder) -> None:
    """What opposite infinities add up to is not a number, and no warning on the user's screen."""
    terms = torch.randn(4, 64)
    terms[0, 3], terms[0, 9] = math.inf, -math.inf
    for add in (lambda x: x.cumsum(-1)[:, -1], lambda x: x.sum(-1)):
        (expected,) = expectation(add, [terms])
        assert expected.reference[0].isnan()
    assert not recwarn.list


class Moments(nn.Module):
    """Its numbers are computed with before they meet a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.beta = 0.99

    def forward(self, mean: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """A running mean."""
        return self.beta * mean + (1 - self.beta) * gradient


class NumbersInATuple(nn.Module):
    """The same, with its numbers together."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: Any = {"betas": (0.9, 0.99), "name": "moments"}

    def forward(self, mean: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """A running mean."""
        _, beta = self.numbers["betas"]
        return beta * mean + (1 - beta) * gradient


@pytest.mark.parametrize("module", [Moments, NumbersInATuple])
def test_kernels_get_numbers_in_single_precision(module: type[nn.Module]) -> None:
    """`1 - beta` in float32 is off by 16 roundings; a wrong beta is not excused."""
    mean, gradient = 1e-3 * normal(4, 300), normal(4, 300)
    (expected,) = expectation(module(), [mean, gradient])
    beta = torch.tensor(0.99)
    assert deviation(beta * mean + (1 - beta) * gradient, expected).share < TIDY
    assert deviation(0.9901 * mean + 0.0099 * gradient, expected).share > 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn], ids=str)
def test_cut_off_is_not_rounded(dtype: torch.dtype) -> None:
    """To nearest passes, towards zero does not."""

    def halved(values: torch.Tensor) -> torch.Tensor:
        return (values * 0.5).to(dtype)

    values = normal(64, 128)
    (expected,) = expectation(halved, [values])
    assert deviation(halved(values), expected).share < 1
    digits = {torch.float16: 10, torch.bfloat16: 7, torch.float8_e4m3fn: 3}[dtype]
    mask = -(1 << (23 - digits))
    cut = ((values * 0.5).view(torch.int32) & mask).view(torch.float32).to(dtype)
    assert deviation(cut, expected).share > 1


def test_a_view_changed_in_place(caplog: pytest.LogCaptureFixture) -> None:
    """`nn.GRU` turns its result around with `transpose_`; tanh may be computed through sigmoid."""
    layer = nn.GRU(6, 8, batch_first=True)
    inputs = [1e-2 * normal(3, 5, 6), 1e-2 * normal(1, 3, 8)]
    with caplog.at_level(logging.INFO):
        expected, _ = expectation(layer, inputs)
    assert "as a whole" not in caplog.text
    assert float(expected.bound.min()) > 2.0**-24


@pytest.mark.parametrize("align", [False, True])
def test_weights_of_an_interpolation_follow_from_coordinates(align: bool) -> None:
    """Those far from the origin are off by more; another alignment is another result."""

    def enlarged(values: torch.Tensor, *, align_corners: bool = align) -> torch.Tensor:
        return F.interpolate(values, scale_factor=2.5, mode="bilinear", align_corners=align_corners)

    values = torch.rand(1, 2, 90, 120, generator=torch.Generator().manual_seed(1))
    (expected,) = expectation(enlarged, [values])
    assert deviation(enlarged(values), expected).share < TIDY
    assert deviation(enlarged(values, align_corners=not align), expected).share > 1


def test_rows_that_overflow_as_a_whole() -> None:
    """Infinities in float16, finite in float64: the bound is there, and what overflows as well passes."""
    values = torch.full((4, 64), 1000.0, dtype=torch.float16)
    (expected,) = expectation(lambda x: x * 1000.0, [values])
    assert deviation(values * 1000.0, expected).passed
