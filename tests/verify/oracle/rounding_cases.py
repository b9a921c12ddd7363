"""Functions with several right and several wrong ways to compute each, as real kernels do.

Every way takes the inputs in their dtype and returns the output in it. Right ones compute in float32, in some
order, or round what the model rounds; wrong ones make one mistake each.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Way = Callable[..., Tensor]
LOG2E = math.log2(math.e)


class Case(NamedTuple):
    """One function."""

    function: Way
    inputs: tuple[Tensor, ...]
    right: dict[str, Way]
    wrong: dict[str, Way]
    """Rejected in float32."""
    wrong_half: dict[str, Way]
    """Rejected in 16-bit types as well."""


def normal(*shape: int, seed: int = 0, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """Float32 numbers that depend on the shape and the seed."""
    generator = torch.Generator().manual_seed(seed + 1000 * len(shape) + sum(shape))
    return torch.randn(shape, generator=generator) * scale + shift


def in_float32(way: Way) -> Way:
    """Convert the inputs, compute, convert the output."""

    def converted(*inputs: Tensor) -> Tensor:
        return way(*(item.float() for item in inputs)).to(inputs[0].dtype)

    return converted


def sequential(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Sum the last axis from left to right."""
    total = torch.zeros(x.shape[:-1], dtype=dtype)
    for column in x.to(dtype).unbind(-1):
        total = total + column
    return total


def backward(x: Tensor) -> Tensor:
    """Sum the last axis from right to left."""
    return sequential(x.flip(-1))


def pairwise(x: Tensor) -> Tensor:
    """Sum the last axis as a tree."""
    while x.shape[-1] > 1:
        x = F.pad(x, (0, x.shape[-1] % 2))
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def split(x: Tensor) -> Tensor:
    """Sum seven parts of the last axis, then their sums."""
    return sequential(torch.stack([part.sum(-1) for part in x.chunk(7, -1)], -1))


def lanes(x: Tensor) -> Tensor:
    """32 running sums, then a tree, as a warp does."""
    padded = F.pad(x, (0, -x.shape[-1] % 32))
    return pairwise(sequential(padded.unflatten(-1, (-1, 32)).transpose(-1, -2)))


def in_half(x: Tensor) -> Tensor:
    """Sum the last axis in the 16-bit type of the inputs, float16 for float32."""
    return sequential(x, torch.float16 if x.dtype == torch.float32 else x.dtype)


SUMS = {"sequential": sequential, "backward": backward, "pairwise": pairwise, "split": split, "lanes": lanes}


def with_sums(make: Callable[[Way], Way], **more: Way) -> dict[str, Way]:
    """One right way for each order of summation."""
    return {name: in_float32(make(total)) for name, total in SUMS.items()} | {
        name: in_float32(way) for name, way in more.items()
    }


def _softmax(total: Way) -> Way:
    def way(x: Tensor) -> Tensor:
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / total(e).unsqueeze(-1)

    return way


def _softmax_exp2(x: Tensor) -> Tensor:
    y = x * LOG2E
    e = torch.exp2(y - y.amax(-1, keepdim=True))
    return e * (1.0 / e.sum(-1, keepdim=True))


def _softmax_online(x: Tensor) -> Tensor:
    largest, total = torch.full((*x.shape[:-1], 1), -math.inf), torch.zeros((*x.shape[:-1], 1))
    for part in x.split(64, -1):
        new = torch.maximum(largest, part.amax(-1, keepdim=True))
        total = total * torch.exp(largest - new) + torch.exp(part - new).sum(-1, keepdim=True)
        largest = new
    return torch.exp(x - largest) / total


def _softmax_direct(x: Tensor) -> Tensor:
    return torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)


def _log_softmax(total: Way) -> Way:
    def way(x: Tensor) -> Tensor:
        m = x.amax(-1, keepdim=True)
        return x - m - torch.log(total(torch.exp(x - m))).unsqueeze(-1)

    return way


def _log_softmax_exp2(x: Tensor) -> Tensor:
    m = x.amax(-1, keepdim=True)
    return x - (m + torch.log2(torch.exp2(x * LOG2E - m * LOG2E).sum(-1, keepdim=True)) / LOG2E)


def _layer_norm(total: Way, eps: float = 1e-5, one_pass: bool = False) -> Way:
    def way(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        n = x.shape[-1]
        mean = (total(x) / n).unsqueeze(-1)
        if one_pass:
            variance = (total(x * x) / n).unsqueeze(-1) - mean * mean
        else:
            variance = (total((x - mean) ** 2) / n).unsqueeze(-1)
        return (x - mean) * torch.rsqrt(variance + eps) * w + b

    return way


def _layer_norm_rounded(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """What is normalised goes to the dtype of the model before it is scaled."""
    return F.layer_norm(x.float(), x.shape[-1:]).to(x.dtype) * w + b


def _layer_norm_fused(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """x * a + c with a = w * rstd, c = b - mean * a."""
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    a = w * torch.rsqrt(variance + 1e-5)
    return torch.addcmul(b - mean * a, x, a)


def _rms_norm(total: Way, eps: float = 1e-6) -> Way:
    def way(x: Tensor, w: Tensor) -> Tensor:
        return x / torch.sqrt((total(x * x) / x.shape[-1]).unsqueeze(-1) + eps) * w

    return way


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    """The model's own."""
    return F.rms_norm(x, x.shape[-1:], w, 1e-6)


def _rms_norm_rounded(x: Tensor, w: Tensor) -> Tensor:
    f = x.float()
    return (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def _channels(x: Tensor) -> Tensor:
    return x.transpose(0, 1).flatten(1)


def batch_norm(x: Tensor) -> Tensor:
    """In training: over the batch."""
    return F.batch_norm(x, None, None, training=True)


def _batch_norm(total: Way, one_pass: bool = False, unbiased: bool = False) -> Way:
    def way(x: Tensor) -> Tensor:
        rows = _channels(x)
        n = rows.shape[-1]
        mean = total(rows) / n
        squares = total(rows * rows) / n - mean * mean if one_pass else total((rows - mean[:, None]) ** 2) / n
        variance = squares * n / (n - 1) if unbiased else squares
        shape = (1, -1, 1, 1)
        return (x - mean.view(shape)) * torch.rsqrt(variance.view(shape) + 1e-5)

    return way


def _group_norm(total: Way, eps: float = 1e-5) -> Way:
    def way(x: Tensor) -> Tensor:
        rows = x.unflatten(1, (4, -1)).flatten(2)
        mean = (total(rows) / rows.shape[-1]).unsqueeze(-1)
        variance = (total((rows - mean) ** 2) / rows.shape[-1]).unsqueeze(-1)
        return ((rows - mean) * torch.rsqrt(variance + eps)).view(x.shape)

    return way


def _gelu_erfc(x: Tensor) -> Tensor:
    return 0.5 * x * torch.erfc(-x * 0.7071067811865476)


def _tanh_exp(x: Tensor) -> Tensor:
    return 2.0 / (1.0 + torch.exp(-2.0 * x)) - 1.0


def _tanh_exp2(x: Tensor) -> Tensor:
    e = torch.exp2(x.abs() * (-2.0 * LOG2E))
    return torch.copysign((1 - e) / (1 + e), x)


def _gelu_tanh_exp(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + _tanh_exp(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _gelu_tanh_sigmoid(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def _silu_tanh(x: Tensor) -> Tensor:
    return x * (0.5 * torch.tanh(0.5 * x) + 0.5)


def _silu_exp2(x: Tensor) -> Tensor:
    return x / (1.0 + torch.exp2(-x * LOG2E))


def _mish_rational(x: Tensor) -> Tensor:
    e = torch.exp(x.clamp(max=20.0))
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def _mish_log(x: Tensor) -> Tensor:
    return x * _tanh_exp(torch.log(1.0 + torch.exp(x)))


def _softplus_plain(x: Tensor) -> Tensor:
    return torch.log(1.0 + torch.exp(x))


def _softplus_max(x: Tensor) -> Tensor:
    return x.clamp(min=0.0) + torch.log2(1.0 + torch.exp2(-x.abs() * LOG2E)) / LOG2E


def _matmul(total: Way) -> Way:
    """Every product, then the sum in some order."""

    def way(a: Tensor, b: Tensor) -> Tensor:
        return total(a.unsqueeze(-2) * b.t())

    return way


def _matmul_split(a: Tensor, b: Tensor) -> Tensor:
    parts = zip(a.chunk(8, 1), b.chunk(8, 0), strict=True)
    return sum((x @ y for x, y in parts), torch.zeros(()))


def _matmul_blocks(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for x, y in zip(a.split(32, 1), b.split(32, 0), strict=True):
        total = total + x @ y
    return total


def _truncated(x: Tensor, bits: int) -> Tensor:
    """Round to nearest, away from the last `bits` of float32's significand."""
    raw = x.contiguous().view(torch.int32)
    return ((raw + (1 << (bits - 1))) & -(1 << bits)).view(torch.float32)


def _tf32(a: Tensor, b: Tensor) -> Tensor:
    return _truncated(a, 13) @ _truncated(b, 13)


def _bf16_products(a: Tensor, b: Tensor) -> Tensor:
    return a.bfloat16().float() @ b.bfloat16().float()


def _half_accumulated(a: Tensor, b: Tensor) -> Tensor:
    dtype = torch.float16 if a.dtype == torch.float32 else a.dtype
    total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
    for x, y in zip(a.unbind(1), b.unbind(0), strict=True):
        total = total + (x[:, None].to(dtype) * y.to(dtype))
    return total.to(a.dtype)


def linear_gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """A chain: linear, gelu, scale, residual."""
    return F.gelu(F.linear(x, w, b)) * 0.5 + x


def _linear_gelu(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = _matmul_blocks(x, w.t()) + b
    return torch.addcmul(x, 0.5 * y, torch.erfc(-y * 0.7071067811865476), value=0.5)


def _im2col(x: Tensor, w: Tensor) -> Tensor:
    columns = F.unfold(x, 3, padding=1)
    return (w.flatten(1) @ columns).view(x.shape[0], w.shape[0], *x.shape[2:])


def _by_taps(x: Tensor, w: Tensor) -> Tensor:
    padded = F.pad(x, (1, 1, 1, 1))
    total = torch.zeros(x.shape[0], w.shape[0], *x.shape[2:])
    for row in range(3):
        for column in range(3):
            part = padded[:, :, row : row + x.shape[2], column : column + x.shape[3]]
            total = total + torch.einsum("bchw,oc->bohw", part, w[:, :, row, column])
    return total


def _winograd(x: Tensor, w: Tensor) -> Tensor:
    """F(2, 3) in both axes."""
    b = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    g = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    a = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])
    tiles = F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
    d = torch.einsum("ij,bchwjk,lk->bchwil", b, tiles, b)
    u = torch.einsum("ij,ocjk,lk->ocil", g, w, g)
    m = torch.einsum("bchwil,ocil->bohwil", d, u)
    y = torch.einsum("ij,bohwjk,lk->bohwil", a, m, a)
    return y.permute(0, 1, 2, 4, 3, 5).reshape(x.shape[0], w.shape[0], *x.shape[2:])


def _conv_transpose_scatter(x: Tensor, w: Tensor) -> Tensor:
    columns = torch.einsum("bchw,cokl->bcoklhw", x, w).sum(1).flatten(4).flatten(1, 3)
    return F.fold(columns, (x.shape[2] + 2, x.shape[3] + 2), 3)


def _attention(scaled: bool = True, rounded: bool = False) -> Way:
    def way(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        dtype = q.dtype if rounded else torch.float32
        s = q.float() @ k.float().transpose(-1, -2) * (q.shape[-1] ** -0.5 * LOG2E if scaled else 1.0)
        e = torch.exp2(s - s.amax(-1, keepdim=True))
        return ((e.to(dtype).float() @ v.float()) / e.sum(-1, keepdim=True)).to(q.dtype)

    return way


def _attention_online(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out, total = torch.zeros(q.shape), torch.zeros((*q.shape[:-1], 1))
    largest = torch.full((*q.shape[:-1], 1), -math.inf)
    for kb, vb in zip(k.split(16, -2), v.split(16, -2), strict=True):
        s = q @ kb.transpose(-1, -2) * q.shape[-1] ** -0.5
        new = torch.maximum(largest, s.amax(-1, keepdim=True))
        e, shrink = torch.exp(s - new), torch.exp(largest - new)
        out, total, largest = out * shrink + e @ vb, total * shrink + e.sum(-1, keepdim=True), new
    return out / total


TARGETS = torch.arange(128) * 7 % 500


def cross_entropy(x: Tensor) -> Tensor:
    """Mean over the batch."""
    return F.cross_entropy(x, TARGETS)


def _cross_entropy(total: Way) -> Way:
    def way(x: Tensor) -> Tensor:
        m = x.amax(-1)
        losses = torch.log(total(torch.exp(x - m[:, None]))) + m - x.gather(1, TARGETS[:, None])[:, 0]
        return total(losses) / len(losses)

    return way


def _std(total: Way, one_pass: bool = False, biased: bool = False) -> Way:
    def way(x: Tensor) -> Tensor:
        n = x.shape[-1]
        mean = total(x) / n
        squares = total(x * x) - n * mean * mean if one_pass else total((x - mean[:, None]) ** 2)
        return torch.sqrt(squares / (n if biased else n - 1))

    return way


def _logaddexp_chain(x: torch.Tensor) -> torch.Tensor:
    x = torch.where(x < -2, -math.inf, x)
    found = [x[..., 0]]
    for number in range(1, x.shape[-1]):
        found.append(torch.logaddexp(found[-1], x[..., number]))
    return torch.stack(found, -1)


def _cumsum_blocks(x: Tensor) -> Tensor:
    blocks = x.unflatten(-1, (-1, 32)).cumsum(-1)
    ends = F.pad(blocks[..., -1].cumsum(-1)[..., :-1], (1, 0))
    return (blocks + ends.unsqueeze(-1)).flatten(-2)


def _cumsum_scan(x: Tensor) -> Tensor:
    step = 1
    while step < x.shape[-1]:
        x = x + F.pad(x[..., :-step], (step, 0))
        step *= 2
    return x


def _cosine(total: Way) -> Way:
    def way(x: Tensor, y: Tensor) -> Tensor:
        return total(x * y) * torch.rsqrt(total(x * x)) * torch.rsqrt(total(y * y))

    return way


def _normalize(total: Way) -> Way:
    return lambda x: x * torch.rsqrt(total(x * x)).unsqueeze(-1)


def _zeros(function: Way) -> Way:
    return lambda *inputs: torch.zeros_like(function(*inputs))


def _scaled(function: Way, factor: float) -> Way:
    return lambda *inputs: (function(*inputs) * factor).to(inputs[0].dtype)


def make_case(
    function: Way,
    inputs: tuple[Tensor, ...],
    right: dict[str, Way],
    wrong: dict[str, Way] | None = None,
    wrong_half: dict[str, Way] | None = None,
) -> Case:
    """Every function: as it is, and in float32; wrong are zeros and 1.1 times the result."""
    always = {"zeros": _zeros(function), "1.1 times": _scaled(function, 1.1)} | (wrong_half or {})
    right = {"eager": function, "in float32": in_float32(function)} | right
    return Case(function, inputs, right, always | (wrong or {}), always)


def _half_way(make: Callable[[Way], Way]) -> dict[str, Way]:
    """Sums in 16 bits."""
    return {"16-bit sums": lambda *inputs: make(in_half)(*inputs).to(inputs[0].dtype)}


W, B = normal(768, seed=3), normal(768, seed=4)
CASES: dict[str, Case] = {
    "softmax": make_case(
        lambda x: F.softmax(x, -1),
        (normal(64, 1000, scale=3.0),),
        with_sums(_softmax, exp2=_softmax_exp2, online=_softmax_online, direct=_softmax_direct),
        _half_way(_softmax),
    ),
    "softmax wide": make_case(
        lambda x: F.softmax(x, -1),
        (normal(16, 500, scale=30.0),),
        with_sums(_softmax, online=_softmax_online),
    ),
    "log_softmax": make_case(
        lambda x: F.log_softmax(x, -1),
        (normal(64, 1000),),
        with_sums(_log_softmax, exp2=_log_softmax_exp2),
        _half_way(_log_softmax),
    ),
    "layer_norm": make_case(
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        (normal(128, 768, shift=0.5), W, B),
        with_sums(_layer_norm, fused=_layer_norm_fused, one_pass=_layer_norm(split, one_pass=True))
        | {"rounded": _layer_norm_rounded},
        {
            "eps 1e-6": in_float32(_layer_norm(split, 1e-6)),
            "eps 1e-3": in_float32(_layer_norm(split, 1e-3)),
        },
        _half_way(_layer_norm),
    ),
    "rms_norm": make_case(
        rms_norm,
        (normal(128, 768), W),
        with_sums(_rms_norm) | {"rounded": _rms_norm_rounded},
        {
            "eps 1e-5": in_float32(_rms_norm(split, 1e-5)),
            "eps 1e-3": in_float32(_rms_norm(split, 1e-3)),
        },
        _half_way(_rms_norm),
    ),
    "batch_norm": make_case(
        batch_norm,
        (normal(10, 16, 10, 10, shift=0.5),),
        with_sums(_batch_norm, one_pass=_batch_norm(sequential, one_pass=True)),
        {"unbiased": in_float32(_batch_norm(split, unbiased=True))},
        _half_way(_batch_norm),
    ),
    "group_norm": make_case(
        lambda x: F.group_norm(x, 4),
        (normal(8, 16, 10, 10),),
        with_sums(_group_norm),
        {"eps 1e-3": in_float32(_group_norm(split, 1e-3))},
        _half_way(_group_norm),
    ),
    "gelu": make_case(
        F.gelu,
        (normal(200, 300, scale=2.0),),
        {"erfc": in_float32(_gelu_erfc)},
        {"tanh": in_float32(lambda x: F.gelu(x, approximate="tanh"))},
    ),
    "gelu tanh": make_case(
        lambda x: F.gelu(x, approximate="tanh"),
        (normal(200, 300, scale=2.0),),
        {"exp": in_float32(_gelu_tanh_exp), "sigmoid": in_float32(_gelu_tanh_sigmoid)},
        {"erf": in_float32(F.gelu)},
    ),
    "silu": make_case(
        F.silu,
        (normal(200, 300, scale=3.0),),
        {"tanh": in_float32(_silu_tanh), "exp2": in_float32(_silu_exp2)},
    ),
    "mish": make_case(
        F.mish,
        (normal(200, 300, scale=2.0),),
        {"rational": in_float32(_mish_rational), "log": in_float32(_mish_log)},
    ),
    "softplus": make_case(
        F.softplus,
        (normal(200, 300, scale=3.0),),
        {"plain": in_float32(_softplus_plain), "max": in_float32(_softplus_max)},
    ),
    "tanh": make_case(
        torch.tanh, (normal(200, 300),), {"exp": in_float32(_tanh_exp), "exp2": in_float32(_tanh_exp2)}
    ),
    "sigmoid": make_case(
        torch.sigmoid,
        (normal(200, 300, scale=4.0),),
        {"tanh": in_float32(lambda x: 0.5 * torch.tanh(0.5 * x) + 0.5)},
    ),
    "matmul 512": make_case(
        torch.matmul,
        (normal(48, 512), normal(512, 40)),
        with_sums(_matmul, split=_matmul_split, blocks=_matmul_blocks),
        {"tf32": _tf32, "bf16 products": _bf16_products},
        {"half accumulated": _half_accumulated},
    ),
    "matmul 4096": make_case(
        torch.matmul,
        (normal(16, 4096), normal(4096, 16)),
        with_sums(_matmul, split=_matmul_split, blocks=_matmul_blocks),
        {"tf32": _tf32, "bf16 products": _bf16_products},
        {"half accumulated": _half_accumulated},
    ),
    "matmul positive": make_case(
        torch.matmul,
        (normal(16, 1000).abs(), normal(1000, 16).abs()),
        with_sums(_matmul, split=_matmul_split),
        {"bf16 products": _bf16_products},
        {"half accumulated": _half_accumulated},
    ),
    "linear gelu": make_case(
        linear_gelu,
        (normal(64, 256), normal(256, 256, scale=0.06), normal(256)),
        {"fused": in_float32(_linear_gelu)},
        {"tanh": in_float32(lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh") * 0.5 + x)},
    ),
    "conv2d": make_case(
        lambda x, w: F.conv2d(x, w, padding=1),
        (normal(2, 16, 16, 16), normal(8, 16, 3, 3)),
        {"im2col": in_float32(_im2col), "taps": in_float32(_by_taps), "winograd": in_float32(_winograd)},
        {"tf32": lambda x, w: F.conv2d(_truncated(x, 13), _truncated(w, 13), padding=1)},
    ),
    "conv_transpose2d": make_case(
        F.conv_transpose2d,
        (normal(2, 16, 8, 8), normal(16, 8, 3, 3)),
        {"scatter": in_float32(_conv_transpose_scatter)},
        {"tf32": lambda x, w: F.conv_transpose2d(_truncated(x, 13), _truncated(w, 13))},
    ),
    "attention": make_case(
        F.scaled_dot_product_attention,
        (normal(2, 4, 64, 32), normal(2, 4, 64, 32, seed=1), normal(2, 4, 64, 32, seed=2)),
        {"online": in_float32(_attention_online), "exp2": _attention(), "rounded": _attention(rounded=True)},
        {"tf32": lambda q, k, v: _attention()(_truncated(q, 13), _truncated(k, 13), _truncated(v, 13))},
        {"no scale": _attention(scaled=False)},
    ),
    "cross_entropy": make_case(
        cross_entropy, (normal(128, 500),), with_sums(_cross_entropy), _half_way(_cross_entropy)
    ),
    "mse_loss": make_case(
        F.mse_loss,
        (normal(64, 500), normal(64, 500, seed=1)),
        with_sums(lambda total: lambda x, y: total(((x - y) ** 2).flatten()) / x.numel()),
        _half_way(lambda total: lambda x, y: total(((x - y) ** 2).flatten()) / x.numel()),
    ),
    "mean": make_case(
        lambda x: x.mean(-1),
        (normal(200, 1000),),
        with_sums(lambda total: lambda x: total(x) / x.shape[-1]),
        {},
        {
            "last dropped": in_float32(lambda x: x[:, :-1].sum(-1) / x.shape[-1]),
            **_half_way(lambda total: lambda x: total(x) / x.shape[-1]),
        },
    ),
    "sum sorted": make_case(
        lambda x: x.sum(-1),
        (normal(50, 2000).sort(-1).values,),
        with_sums(lambda total: total),
        _half_way(lambda total: total),
    ),
    "cumsum": make_case(
        lambda x: x.cumsum(-1),
        (normal(50, 1024),),
        {"blocks": in_float32(_cumsum_blocks), "scan": in_float32(_cumsum_scan)},
    ),
    "prod": make_case(
        lambda x: x.prod(-1), (normal(300, 8),), {"backward": in_float32(lambda x: x.flip(-1).prod(-1))}
    ),
    "logsumexp": make_case(
        lambda x: torch.logsumexp(x, -1),
        (normal(64, 1000),),
        with_sums(lambda total: lambda x: torch.log(total(torch.exp(x)))),
        _half_way(lambda total: lambda x: torch.log(total(torch.exp(x)))),
    ),
    "logcumsumexp": make_case(
        lambda x: torch.logcumsumexp(torch.where(x < -2, -math.inf, x), -1),
        (normal(20, 600),),
        {"one after the other": in_float32(_logaddexp_chain)},
    ),
    "max_pool2d": make_case(lambda x: F.max_pool2d(x, 3, 2, 1), (normal(2, 8, 20, 20),), {}),
    "avg_pool2d": make_case(
        lambda x: F.avg_pool2d(x, 3),
        (normal(2, 8, 21, 21),),
        {
            "taps": in_float32(
                lambda x: (
                    sequential(F.unfold(x.flatten(0, 1)[:, None], 3, stride=3).transpose(1, 2)).view(
                        2, 8, 7, 7
                    )
                    / 9
                )
            )
        },
    ),
    "normalize": make_case(
        lambda x: F.normalize(x, dim=-1), (normal(64, 1000),), with_sums(_normalize), _half_way(_normalize)
    ),
    "cosine": make_case(
        lambda x, y: F.cosine_similarity(x, y, dim=-1),
        (normal(200, 1000), normal(200, 1000, seed=1)),
        with_sums(_cosine),
        _half_way(_cosine),
    ),
    "std": make_case(
        lambda x: x.std(-1),
        (normal(200, 1000, shift=1.0),),
        with_sums(_std, one_pass=_std(sequential, one_pass=True)),
        {"biased": in_float32(_std(split, biased=True)), **_half_way(_std)},
    ),
}
