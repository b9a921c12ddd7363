"""Vendors' operators that stand as baselines compute what the reference computes, where they can run here."""

import importlib
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch

from kernels.matmul.reference import reference
from pipeline.backends.package_calls import differentiated
from tests.backends.triton.triton_jobs import kernel as declared
from tests.kernels.derived_bounds import DYNAMICS, LINEARS, SPARSES, kernel_of
from tests.kernels.test_cpp_kernels import inputs_of, problem_of

KERNELS = ("matmul", "matmul_bias_gelu")
CASES = [
    pytest.param(kernel, name, id=f"{kernel}-{name}")
    for kernel in KERNELS
    for name, vendor in declared(kernel).vendors.items()
    if "cpu" in vendor.kinds
]


def find(path: str) -> Callable[..., torch.Tensor]:
    """The function of `module:function`."""
    module, _, name = path.partition(":")
    function: Callable[..., torch.Tensor] = getattr(importlib.import_module(module), name)
    return function


@pytest.mark.parametrize(("kernel", "name"), CASES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (33, 47, 65), (64, 128, 96)])
def test_equals_the_reference(kernel: str, name: str, sizes: tuple[int, int, int]) -> None:
    """Float32 products, up to the order of the sums."""
    generator = torch.Generator().manual_seed(3)
    m, n, k = sizes
    a, b = torch.randn(m, k, generator=generator), torch.randn(k, n, generator=generator)
    bias = torch.randn(n, generator=generator)
    epilogue = declared(kernel).attributes["epilogue"]
    inputs = (a, b, bias) if epilogue != "none" else (a, b)
    function = find(declared(kernel).vendors[name].function)
    expected = reference(*(each.double() for each in inputs), epilogue=epilogue)
    found = function(*inputs, epilogue=epilogue)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", LINEARS)
def test_dense_product_equals_the_reference(name: str) -> None:
    """Dequantised beforehand, in the type of the scales."""
    kernel = kernel_of(name)
    problem = problem_of(kernel, "float32", (5, 33, 129))
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    dense = kernel.vendors["dense"]
    assert dense.prepare is not None
    found = find(dense.function)(*find(dense.prepare)(*inputs, **kernel.attributes))
    expected = find(kernel.reference)(*inputs, **kernel.attributes)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", SPARSES)
@pytest.mark.parametrize("vendor", ["dense", "csr"])
def test_product_with_restored_weights_equals_the_reference(name: str, vendor: str) -> None:
    """With zeros, and in compressed rows."""
    kernel = kernel_of(name)
    sizes = (5, 33, 30, 7)[: len(kernel.dimensions)]
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    declared_vendor = kernel.vendors[vendor]
    assert declared_vendor.prepare is not None
    found = find(declared_vendor.function)(*find(declared_vendor.prepare)(*inputs, **kernel.attributes))
    torch.testing.assert_close(found, find(kernel.reference)(*inputs, **kernel.attributes))


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        *((each, "unfused") for each in ("attention", "attention_causal", "attention_window")),
        ("attention_latent", "unfused"),
        *((each, "unfused") for each in ("attention_backward", "attention_causal_backward")),
        ("attention_window", "in_pieces"),
    ],
)
@pytest.mark.parametrize("sizes", [(2, 3, 5, 9, 16), (1, 2, 7, 7, 8), (1, 1, 1, 4, 3)])
def test_attention_equals_the_reference(name: str, vendor: str, sizes: tuple[int, ...]) -> None:
    """With and without a mask, where there are more keys than queries as well, and its gradients."""
    kernel = kernel_of(name)
    sizes = (*sizes, 5)[: len(kernel.dimensions)]
    inputs = inputs_of(
        problem_of(kernel, "float32", sizes), "normal", torch.Generator().manual_seed(3)
    ).values()
    expected = find(kernel.reference)
    if kernel.gradient_of is not None:
        names = [each for each, tensor in kernel.tensors.items() if tensor.role == "input"]
        expected = differentiated(expected, kernel.gradient_of, tuple(names))
    found = find(kernel.vendors[vendor].function)(*inputs, **kernel.attributes)
    torch.testing.assert_close(found, expected(*inputs, **kernel.attributes))


@pytest.mark.parametrize("vendor", ["in_turn", "padded"])
@pytest.mark.parametrize("sizes", [(40, 5, 2, 3, 16), (7, 20, 1, 1, 8), (1, 1, 1, 1, 1)])
def test_attention_of_packed_sequences_equals_the_reference(vendor: str, sizes: tuple[int, ...]) -> None:
    """Of several heads that share keys or none, and where some sequences are empty."""
    kernel = kernel_of("attention_varlen")
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    found = find(kernel.vendors[vendor].function)(*inputs)
    torch.testing.assert_close(found, find(kernel.reference)(*inputs))


@pytest.mark.parametrize("vendor", ["in_turn", "padded"])
@pytest.mark.parametrize("sizes", [(40, 5, 2, 16), (7, 20, 1, 8), (1, 1, 1, 1)])
def test_linear_attention_of_windows_equals_the_reference(vendor: str, sizes: tuple[int, ...]) -> None:
    """The linear form, also where some windows are empty."""
    kernel = kernel_of("linear_attention_windows")
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    found = find(kernel.vendors[vendor].function)(*inputs, **kernel.scalars)
    torch.testing.assert_close(found, find(kernel.reference)(*inputs, **kernel.scalars))


@pytest.mark.parametrize("sizes", [(13, 70, 8, 40, 3, 2), (5, 9, 4, 7, 6, 3), (1, 1, 1, 1, 1, 1)])
def test_mixture_of_adapters_in_turn_equals_the_reference(sizes: tuple[int, ...]) -> None:
    """Also where a token has an adapter twice."""
    kernel = kernel_of("mixture_lora")
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    found = find(kernel.vendors["loop"].function)(*inputs)
    torch.testing.assert_close(found, find(kernel.reference)(*inputs))


def test_latent_attention_of_contiguous_keys_equals_the_reference() -> None:
    """Keys and values copied out of their pages beforehand."""
    kernel = kernel_of("paged_attention_latent")
    problem = problem_of(kernel, "float32", (3, 20, 40, 8, 5, 4, 11))
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    contiguous = kernel.vendors["contiguous"]
    assert contiguous.prepare is not None
    found = find(contiguous.function)(*find(contiguous.prepare)(*inputs, **kernel.scalars))
    torch.testing.assert_close(found, find(kernel.reference)(*inputs, **kernel.scalars))


@pytest.mark.parametrize("sizes", [(2, 40, 50, 16, 3), (1, 16, 32, 8, 2)])
def test_selection_from_gathered_candidates_equals_the_reference(sizes: tuple[int, ...]) -> None:
    """The same blocks, in any order; from all of them if all parents are listed."""
    kernel = kernel_of("block_top_k")
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3))
    inputs["parents"].clamp_(max=-(-sizes[2] // 16) - 1)
    found, expected = (
        find(path)(*inputs.values(), **kernel.attributes).sort(-1).values
        for path in (kernel.vendors["gathered"].function, kernel.reference)
    )
    assert torch.equal(found, expected)
    every = {**inputs, "parents": torch.arange(-(-sizes[2] // 16)).expand(*inputs["parents"].shape[:2], -1)}
    found, expected = (
        find(path)(*every.values(), **kernel.attributes).sort(-1).values
        for path in (kernel.vendors["all_blocks"].function, kernel.reference)
    )
    assert torch.equal(found, expected)


@pytest.mark.parametrize("name", ["attention_selected", "attention_selected_backward"])
def test_dense_attention_equals_that_of_all_blocks(name: str) -> None:
    """Where a list names all tokens, and each key is one."""
    kernel = kernel_of(name)
    problem = problem_of(kernel, "float32", (2, 40, 40, 16, 3))
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3))
    inputs["count"].fill_(1)
    expected = find(kernel.reference)
    if kernel.gradient_of is not None:
        names = [each for each, tensor in kernel.tensors.items() if tensor.role == "input"]
        expected = differentiated(expected, kernel.gradient_of, tuple(names))
    dense = kernel.vendors["dense"]
    assert dense.prepare is not None
    found = find(dense.function)(*find(dense.prepare)(*inputs.values(), **kernel.attributes))
    torch.testing.assert_close(found, expected(*inputs.values(), **kernel.attributes))


@pytest.mark.parametrize("vendor", ["loop", "chunked"])
@pytest.mark.parametrize("sizes", [(2, 150, 3, 5, 16), (1, 1, 1, 1, 1)])
def test_state_space_equals_the_reference(vendor: str, sizes: tuple[int, ...]) -> None:
    """Whatever is left of the last chunk, and of a single step."""
    kernel = kernel_of("state_space")
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    found = find(kernel.vendors[vendor].function)(*inputs)
    torch.testing.assert_close(found, find(kernel.reference)(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [(1, 2, 70, 24, 20), (2, 1, 3, 5, 5)])
def test_delta_rule_in_chunks_equals_the_reference(sizes: tuple[int, ...]) -> None:
    """Of a chunk and a part of one, and of less than a chunk."""
    kernel = kernel_of("gated_delta_rule")
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    found = find(kernel.vendors["in_chunks"].function)(*inputs)
    torch.testing.assert_close(found, find(kernel.reference)(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize("sizes", [(5, 3, 17), (1, 1, 1)])
def test_layer_equals_the_reference(name: str, sizes: tuple[int, int, int]) -> None:
    """The order of the gates is that of PyTorch's layer, and its inputs go through the identity."""
    kernel = kernel_of(name)
    problem = problem_of(kernel, "float32", sizes)
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    layer = kernel.vendors["layer"]
    assert layer.prepare is not None
    found = find(layer.function)(*find(layer.prepare)(*inputs, **kernel.attributes))
    torch.testing.assert_close(found, find(kernel.reference)(*inputs, **kernel.attributes))


def test_float32_step_equals_the_reference() -> None:
    """The library's fused AdamW on dequantised moments: before the new ones become codes."""
    kernel = kernel_of("adamw_8bit")
    problem = problem_of(kernel, "float32", (5, 33))
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3)).values()
    float32 = kernel.vendors["float32"]
    assert float32.prepare is not None
    p, m, v = find(float32.function)(*find(float32.prepare)(*inputs, **kernel.scalars))
    expected, _, m_scale, _, v_scale = find(kernel.reference)(*inputs, **kernel.scalars)
    torch.testing.assert_close(p, expected)
    torch.testing.assert_close(m.abs().amax(-1), m_scale)
    torch.testing.assert_close(v.amax(-1), v_scale)


def test_step_of_full_rank_is_that_of_adamw() -> None:
    """Of the same gradient, with moments of the whole matrix, which are made beforehand."""
    kernel = kernel_of("galore_adamw")
    problem = problem_of(kernel, "float32", (7, 9, 3))
    inputs = inputs_of(problem, "normal", torch.Generator().manual_seed(3))
    full_rank = kernel.vendors["full_rank"]
    assert full_rank.prepare is not None
    found = find(full_rank.function)(*find(full_rank.prepare)(*inputs.values(), **kernel.scalars))
    settings = {name: value for name, value in kernel.scalars.items() if name != "scale"}
    w, g = inputs["w"], inputs["g"]
    expected = find(kernel_of("adamw").reference)(w, g, torch.zeros_like(g), g.square(), **settings)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted)


def test_selected_tokens_are_drawn_as_often_as_those_of_the_reference() -> None:
    """Of equally spaced draws, each token takes its share, whatever the order in which they are looked up."""
    kernel = kernel_of("top_k_top_p_sampling")
    draws = torch.arange(0, 1 << 23, 1 << 13, dtype=torch.int32)
    logits = torch.randn(1, 70, generator=torch.Generator().manual_seed(3)).expand(len(draws), -1)
    k = torch.full_like(draws, 20)
    expected, shares = find(kernel.reference)(logits, k, draws, **kernel.scalars)
    tokens, probabilities = find(kernel.vendors["topk"].function)(logits, k, draws, **kernel.scalars)
    assert (tokens.bincount(minlength=70) - expected.bincount(minlength=70)).abs().max() <= 1
    for token in expected.unique():
        torch.testing.assert_close(probabilities[tokens == token][0], shares[expected == token][0])


@pytest.mark.parametrize("name", DYNAMICS)
def test_products_of_8_bits(name: str) -> None:
    """The same codes, but for blocks and four bits, where a coarser scale or more bits stand for them."""
    kernel = kernel_of(name)
    inputs = inputs_of(
        problem_of(kernel, "float32", (33, 47, 64)), "normal", torch.Generator().manual_seed(3)
    )
    got = find(kernel.vendors["eight_bits"].function)(*inputs.values(), **kernel.attributes)
    expected = find(kernel.reference)(*inputs.values(), **kernel.attributes)
    exact = kernel.attributes["scaling"] in ("row", "tensor")
    assert (got - expected).norm() <= (1e-3 if exact else 0.3) * expected.norm()
    dense = find(kernel.vendors["dense"].function)(*inputs.values(), **kernel.attributes)
    assert (dense - expected).norm() <= 0.3 * expected.norm()


def test_every_function_is_there() -> None:
    """Those of other devices as well: they can be imported, if not called."""
    for kernel in KERNELS:
        for vendor in declared(kernel).vendors.values():
            assert callable(find(vendor.function))
            assert vendor.set_up is None or callable(find(vendor.set_up))


@pytest.mark.slow
def test_onednn_is_left_out() -> None:
    """In a process of its own, because the choice holds for the whole process."""
    script = (
        "import torch; from kernels.matmul.vendors import without_onednn; without_onednn();"
        "print(torch.backends.mkldnn.enabled)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
