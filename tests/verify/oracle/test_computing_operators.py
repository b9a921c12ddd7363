"""Operators that compute are distinguished from those that move, view or allocate, over all of PyTorch."""

import pytest
import torch

from pipeline.verify.oracle.computing_operators import NOT_COMPUTING, is_computing


@pytest.mark.parametrize(
    "name",
    [
        "aten::softmax", "aten::_softmax", "aten::add.Tensor", "aten::add_", "aten::mm",
        "aten::_fused_rms_norm", "aten::cat", "aten::constant_pad_nd", "aten::index.Tensor",
        "aten::where.self", "aten::mul_.Scalar", "mm", "aten::convolution",
        "aten::_scaled_dot_product_flash_attention_for_cpu", "prims::sum",
    ],
)  # fmt: skip
def test_computing(name: str) -> None:
    """Arithmetic, reductions, products, and what joins or picks."""
    assert is_computing(name)


@pytest.mark.parametrize(
    "name",
    [
        "aten::view", "aten::t", "aten::transpose.int", "aten::empty.memory_format",
        "aten::zeros_like", "aten::fill_.Scalar", "aten::zero_", "aten::copy_", "aten::_to_copy",
        "aten::clone", "aten::contiguous", "aten::_unsafe_view", "aten::normal_", "aten::item",
        "candidate::softmax", "triton::kernel",
    ],
)  # fmt: skip
def test_not_computing(name: str) -> None:
    """Views, allocation, constants, copies and casts, and operators of the candidate's own."""
    assert not is_computing(name)


def test_operators_without_arithmetic_exist() -> None:
    """No name of the list is misspelt, and none combines operands."""
    combining = {"add", "sub", "mul", "div", "matmul", "softmax", "sum", "mean", "max", "relu", "gelu", "exp"}
    assert not NOT_COMPUTING & combining
    unknown = {n for n in NOT_COMPUTING if not (hasattr(torch.ops.aten, n) or hasattr(torch.Tensor, n))}
    assert unknown == set()
