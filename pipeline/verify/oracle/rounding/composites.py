"""Operations that consist of others: normalisations, softmax, losses and their gradients.

In: an operation. Out: a function that computes the same from primitive operations, each of which is then
rounded by itself; 16-bit arguments are computed in float32, as every implementation does, but statistics
and normalised values of a 16-bit model may be stored in 16 bits on the way. Variances stay whole, because
they may be computed in one pass.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

from pipeline.verify.torch_internals import decompositions

_TABLE = """
    _softmax _softmax_backward_data _log_softmax_backward_data
    native_layer_norm_backward native_group_norm_backward native_batch_norm_backward
    _native_batch_norm_legit_functional _fused_rms_norm _fused_rms_norm_backward
    linalg_vector_norm mse_loss mse_loss_backward nll_loss_forward nll_loss_backward nll_loss2d_forward
    nll_loss2d_backward smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward
    binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits soft_margin_loss
    glu glu_backward dist _weight_norm_interface addr logit cosine_embedding_loss margin_ranking_loss
    multi_margin_loss addbmm
"""


def decomposition(function: Any, name: str) -> Callable[..., Any] | None:
    """How an operation is composed of others, or None where it is not."""
    own = _OWN.get(name)
    if own is not None:
        return own
    return _library().get(function) if name in _names() else None


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(_TABLE.split())


@functools.cache
def _library() -> dict[Any, Callable[..., Any]]:
    return decompositions()


def _computed(values: torch.Tensor) -> torch.Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _safe_softmax(values: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Softmax whose rows without any finite entry are zeros."""
    result = torch.softmax(values, dim, dtype=dtype)
    nothing = (values == float("-inf")).all(dim, keepdim=True)
    return torch.where(nothing, torch.zeros((), dtype=result.dtype), result)


def _log_softmax(values: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    wide = _computed(values)
    shifted = wide - wide.amax(dim, keepdim=True) if values.numel() else wide
    total = _through(torch.sum(torch.exp(shifted), dim, keepdim=True), values.dtype)
    return (shifted - torch.log(total)).to(torch.float32 if half_to_float else values.dtype)


def _logsumexp(values: torch.Tensor, dim: Any, keepdim: bool = False) -> torch.Tensor:
    wide = _computed(values)
    largest = wide.amax(dim, keepdim=True)
    largest = torch.where(largest.abs() == float("inf"), torch.zeros((), dtype=wide.dtype), largest)
    total = torch.log(torch.sum(torch.exp(wide - largest), dim, keepdim=True)) + largest
    total = total if keepdim else _squeezed(total, dim)
    return total.to(values.dtype)


def _squeezed(values: torch.Tensor, dim: Any) -> torch.Tensor:
    axes = [dim] if isinstance(dim, int) else list(dim) or list(range(values.dim()))
    return values.squeeze(axes)


def _norm(
    values: torch.Tensor,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    power = 2 if p is None else p
    found: torch.Tensor = torch.linalg.vector_norm(values, power, dim or None, keepdim, dtype=dtype)
    return found


def _through(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Stored in the model's dtype on the way, as 16-bit implementations may."""
    return values.to(dtype).to(values.dtype)


def _standardized(
    values: torch.Tensor, axes: list[int], eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Values with mean 0 and variance 1 over the axes, their mean, and one over their deviation."""
    variance, mean = torch.var_mean(values, axes, correction=0, keepdim=True)
    mean, scale = _through(mean, dtype), _through(torch.rsqrt(variance + eps), dtype)
    return _through((values - mean) * scale, dtype), mean, scale


def _affine(
    values: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    values = values if weight is None else values * _computed(weight)
    values = values if bias is None else values + _computed(bias)
    return values.to(dtype)


def _layer_norm(
    values: torch.Tensor, shape: Any, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, ...]:
    axes = list(range(values.dim() - len(shape), values.dim()))
    result, mean, scale = _standardized(_computed(values), axes, eps, values.dtype)
    return _affine(result, weight, bias, values.dtype), mean, scale


def _group_norm(values: torch.Tensor, weight: Any, bias: Any, *sizes: Any) -> tuple[torch.Tensor, ...]:
    batch, channels, _, groups, eps = sizes
    rows = _computed(values).reshape(batch, groups, -1)
    result, mean, scale = _standardized(rows, [2], eps, values.dtype)
    shape = [1, channels] + [1] * (values.dim() - 2)
    weight, bias = (None if item is None else item.view(shape) for item in (weight, bias))
    result = _affine(result.view(values.shape), weight, bias, values.dtype)
    return result, mean.squeeze(-1), scale.squeeze(-1)


def _batch_norm(values: torch.Tensor, weight: Any, bias: Any, *rest: Any) -> tuple[torch.Tensor, ...]:
    """With running statistics among the other arguments, or without them."""
    known_mean, known_variance, training, momentum, eps = rest if len(rest) == 5 else (None, None, *rest)
    wide = _computed(values)
    shape = [1, values.shape[1]] + [1] * (values.dim() - 2)
    weight, bias = (None if item is None else item.view(shape) for item in (weight, bias))
    if not training:
        scale = torch.rsqrt(_computed(known_variance).view(shape) + eps)
        result = _through((wide - _computed(known_mean).view(shape)) * scale, values.dtype)
        return _affine(result, weight, bias, values.dtype), values.new_empty(0), values.new_empty(0)
    axes = [axis for axis in range(values.dim()) if axis != 1]
    result, mean, scale = _standardized(wide, axes, eps, values.dtype)
    if known_mean is not None:
        unbiased, average = torch.var_mean(wide, axes, correction=1)
        known_mean.mul_(1 - momentum).add_(average * momentum)
        known_variance.mul_(1 - momentum).add_(unbiased * momentum)
    return _affine(result, weight, bias, values.dtype), mean.flatten(), scale.flatten()


def _batch_norm_inference(values: torch.Tensor, weight: Any, bias: Any, *rest: Any) -> Any:
    mean, variance, momentum, eps = rest
    return _batch_norm(values, weight, bias, mean, variance, False, momentum, eps)


_OWN: dict[str, Callable[..., Any]] = {
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm_inference,
    "_safe_softmax": _safe_softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "norm": _norm,
}
