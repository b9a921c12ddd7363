"""The presets find small mistakes in the declared kernels, and take no right result for wrong.

Each mistake is a Python function in float32 (or another type), judged on the cases of the preset as declared.
"""

import functools
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from pipeline.plan.config.compose import composer
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.formula import ELEMENT_BYTES, evaluate_number
from pipeline.records.planning.problem import Problem
from pipeline.records.record import from_plain
from pipeline.verify.harness.kernel_cases import KernelCaseSet, PreparedCase
from pipeline.verify.harness.planning.shapes import ShapeBudget, plan
from pipeline.verify.oracle.reference import ReferenceOracle, find_function
from pipeline.verify.oracle.tolerance import deviation
from tests.paths import ROOT

CONF = ROOT / "conf"
PRESETS = tuple(sorted(path.stem for path in (CONF / "verify").glob("*.yaml")))
DIMENSIONS = {
    "softmax": {"rows": 96, "cols": 512},
    "rms_norm": {"rows": 96, "cols": 512},
    "matmul": {"M": 48, "N": 80, "K": 256},
    "matmul_bias_gelu": {"M": 48, "N": 80, "K": 256},
}


@functools.cache
def cases(name: str, preset: str, element: str, mode: str) -> tuple[PreparedCase, ...]:
    """All cases of a declared kernel under a declared preset."""
    with composer(CONF) as composed:
        kernel = from_plain(composed.option("kernel", name), Kernel)
        settings = from_plain(composed.option("verify", preset), Verify)
    tensors = {
        key: from_plain({"role": t.role, "shape": t.shape, "dtype": element, "layout": t.layout}, type(t))
        for key, t in kernel.tensors.items()
    }
    problem = Problem(
        kernel=name,
        dimensions=DIMENSIONS[name],
        tensors=tensors,
        scalars=kernel.scalars,
        attributes=kernel.attributes,
        element=element,
    )

    def terms(case: Problem) -> float:
        names = {**case.dimensions, "itemsize": ELEMENT_BYTES[element]}
        return evaluate_number(kernel.tolerance.reduction, names)

    oracle = ReferenceOracle(
        reference=find_function(kernel.reference),
        magnitude=find_function(kernel.tolerance.magnitude),
        tolerance=kernel.tolerance,
        terms=terms,
    )
    distributions = tuple(d for d in settings.distributions if d != "integers" or kernel.linear)
    case_set = KernelCaseSet(problem, oracle, distributions=distributions, seeds=(11,))
    interpreted = mode == "interpreted"
    budget = ShapeBudget(
        elements=settings.interpreter_elements_at_most if interpreted else 1 << 16,
        rows=32 if interpreted else None,
        edges=settings.edge_shapes,
    )
    shapes = plan(problem, budget, lambda _: True)
    return tuple(
        case_set.prepare(case) for case in (case_set.sparse if interpreted else case_set.full)(shapes)
    )


def rms_norm(x, w, *, eps=1e-6, count=None):
    """Root mean square in float32."""
    x, w = x.float(), w.float()
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) / (count or x.shape[-1]) + eps) * w


def gelu_layer(a, b, bias):
    """Product and bias in float32; PyTorch's vectorised GELU of infinity is NaN in float32."""
    return functional.gelu((a.float() @ b.float() + bias.float()).double())


RIGHT: dict[str, Callable] = {
    "softmax": lambda x: torch.softmax(x.float(), -1),
    "rms_norm": rms_norm,
    "matmul": lambda a, b: a.float() @ b.float(),
    "matmul_bias_gelu": gelu_layer,
}
WRONG: dict[str, Callable] = {
    "softmax: maximum not taken out": lambda x: x.float().exp() / x.float().exp().sum(-1, keepdim=True),
    "softmax: last column not in the sum": lambda x: (
        torch.softmax(x.float(), -1) / torch.softmax(x.float(), -1)[:, :-1].sum(-1, keepdim=True)
    ),
    "softmax: maximum from 0": lambda x: (
        (e := (x.float() - x.float().amax(-1, keepdim=True).clamp(min=0)).exp()) / e.sum(-1, keepdim=True)
    ),
    "softmax: sum in float16": lambda x: (
        (e := (x.float() - x.float().amax(-1, keepdim=True)).exp())
        / e.half().cumsum(-1, dtype=torch.float16)[:, -1:].float()
    ),
    "softmax: over the other axis": lambda x: torch.softmax(x.float(), 0),
    "rms_norm: eps of 1e-5": functools.partial(rms_norm, eps=1e-5),
    "rms_norm: no eps": functools.partial(rms_norm, eps=0.0),
    "rms_norm: eps added to the root": lambda x, w: (
        x.float() / (x.float().square().mean(-1, keepdim=True).sqrt() + 1e-6) * w.float()
    ),
    "rms_norm: one column less in the mean": lambda x, w: rms_norm(x, w, count=max(x.shape[-1] - 1, 1)),
    "rms_norm: weight left out": lambda x, w: rms_norm(x, torch.ones_like(w)),
    "rms_norm: layer norm": lambda x, w: functional.layer_norm(
        x.float(), x.shape[-1:], w.float(), None, 1e-6
    ),
    "matmul: last k left out": lambda a, b: a.float()[:, :-1] @ b.float()[:-1],
    "matmul: sum in bfloat16": lambda a, b: a.bfloat16() @ b.bfloat16(),
    "matmul: b in tf32": lambda a, b: (
        a.float() @ (b.float().view(torch.int32) & -8192).view(torch.float32)  # 10 bits of the mantissa
    ),
    "matmul: last column copied": lambda a, b: (
        a.float() @ torch.cat([b.float()[:, :-1], b.float()[:, -2:-1]], 1)
        if b.shape[1] > 1
        else a.float() @ b.float()
    ),
    "matmul_bias_gelu: gelu by tanh": lambda a, b, bias: functional.gelu(
        a.float() @ b.float() + bias.float(), approximate="tanh"
    ),
    "matmul_bias_gelu: bias left out": lambda a, b, bias: gelu_layer(a, b, bias * 0),
    "matmul_bias_gelu: bias after gelu": lambda a, b, bias: (
        functional.gelu(a.float() @ b.float()) + bias.float()
    ),
}


def passes(function: Callable, case: PreparedCase) -> bool:
    """Whether a function's result, rounded once to the output type, is within the bound."""
    (name,) = case.expected
    expected = case.expected[name]
    result = function(*case.inputs.values()).to(getattr(torch, expected.dtype))
    return deviation(result.reshape(expected.reference.shape), expected).passed


def runs(always: Callable[[str, str], bool]) -> pytest.MarkDecorator:
    """Every preset in both modes; those that only deepen the coverage are slow."""
    return pytest.mark.parametrize(
        ("preset", "mode"),
        [
            pytest.param(preset, mode, marks=() if always(preset, mode) else pytest.mark.slow)
            for preset in PRESETS
            for mode in ("measured", "interpreted")
        ],
    )


@runs(lambda preset, _: preset == "standard")
@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kernel", RIGHT)
def test_right_results_pass(kernel: str, element: str, preset: str, mode: str) -> None:
    """PyTorch in float32, rounded once, is within the bound in every case."""
    tried = cases(kernel, preset, element, mode)
    assert [case.case.label for case in tried if not passes(RIGHT[kernel], case)] == []


@runs(lambda preset, mode: preset == "standard" or mode == "measured")
@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_found(mistake: str, preset: str, mode: str) -> None:
    """Each mistake fails at least one case of each preset."""
    kernel = mistake.partition(":")[0]
    verdicts = [passes(WRONG[mistake], case) for case in cases(kernel, preset, "float32", mode)]
    assert not all(verdicts)
