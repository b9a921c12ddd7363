"""What every implementation of the field does is within the bound; what it does not do is not."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from pipeline.verify.oracle.rounding.expectation import Allowance, expectation
from pipeline.verify.oracle.tolerance import deviation
from tests.selection import slow_unless

Function = Callable[..., torch.Tensor]


def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers, always the same."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def share(model: Function, candidate: Function, *inputs: torch.Tensor, mixed_precision: bool = True) -> float:
    """Of the bound that a candidate uses."""
    (expected,) = expectation(model, inputs, allowance=Allowance(mixed_precision=mixed_precision))
    return deviation(candidate(*inputs), expected).share


def split_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Four partial products, added."""
    return torch.stack([a[:, at : at + 64] @ b[at : at + 64] for at in range(0, a.shape[1], 64)]).sum(0)


def test_rows_with_nan_leave_the_others_their_bound() -> None:
    """Also where they are among those that drift is looked for in."""
    a, b = drawn(64, 256), drawn(256, 64)
    a[0, 5] = float("nan")
    assert share(torch.matmul, split_product, a, b) <= 0.5


def cut(x: torch.Tensor) -> torch.Tensor:
    """float32 rounded to the ten bits of tf32."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def test_products_of_three_of_tf32() -> None:
    """Also where so few of them are added that nothing averages out; one product of tf32 is too coarse."""

    def three(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return cut(a - cut(a)) @ cut(b) + cut(a) @ cut(b - cut(b)) + cut(a) @ cut(b)

    for terms in (1, 2, 5, 64):
        a, b = drawn(400, terms), drawn(terms, 300)
        assert share(torch.matmul, three, a, b) <= 0.8
        assert share(torch.matmul, lambda a, b: cut(a) @ cut(b), a, b) > 1.0


@pytest.mark.parametrize("value", [0.5590, 1.1813, 0.1082, 5.7])
@pytest.mark.parametrize("factor", [0.1 / 300, 1 / 300, 0.9, 1.7])
def test_equal_terms_that_are_scaled_first(value: float, factor: float) -> None:
    """How far sums of equal terms drift depends on their digits, which a factor changes."""
    x = torch.full((4, 300), value)

    def one_by_one(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(4)
        for term in (x * factor).unbind(-1):
            total = total + term
        return total

    assert share(lambda x: x.sum(-1) * factor, one_by_one, x) <= 0.9
    assert share(lambda x: x.sum(-1) * factor, lambda x: x[:, :299].sum(-1) * factor, x) > 1.0


def added_in_turn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Products of matrices, one term after the other."""
    total = torch.zeros(*a.shape[:-1], b.shape[-1])
    for term in range(a.shape[-1]):
        total = total + a[..., term : term + 1] * b[..., term : term + 1, :]
    return total


@pytest.mark.parametrize("heads", [2, 40])
@pytest.mark.parametrize("value", [0.4079, 0.1082, 1.1813])
def test_equal_terms_in_some_products_of_a_batch(heads: int, value: float) -> None:
    """Which products they are in does not matter, nor do a few other terms."""
    a, b = torch.full((heads, 48, 900), 0.3789), torch.full((heads, 900, 32), value)
    a[0], b[0] = drawn(48, 900), drawn(900, 32)
    b[-1, 31, 7], a[-1, 5, 8] = 0.6, -0.2
    assert share(torch.matmul, added_in_turn, a, b) <= 0.95
    assert share(torch.matmul, lambda a, b: a[..., 1:] @ b[:, 1:], a, b) > 1.0


INDEX = torch.zeros(20000, dtype=torch.int64)
SCATTERS: dict[str, Function] = {
    "index_add": lambda i, w: torch.zeros(4, dtype=w.dtype).index_add(0, i, w),
    "scatter_add": lambda i, w: torch.zeros(4, dtype=w.dtype).scatter_add(0, i, w),
    "scatter_reduce": lambda i, w: torch.zeros(4, dtype=w.dtype).scatter_reduce(0, i, w, "sum"),
    "index_put": lambda i, w: torch.zeros(4, dtype=w.dtype).index_put((i,), w, accumulate=True),
    "bincount": lambda i, w: torch.bincount(i, w, minlength=4),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", SCATTERS)
def test_sums_of_equal_terms(name: str, dtype: torch.dtype) -> None:
    """PyTorch itself, in the order of the terms, and the exact sum."""
    if name == "bincount" and dtype is torch.float16:
        pytest.skip("PyTorch counts in float64 there")
    count = 20000 if dtype is torch.float32 else 300
    index, weights = INDEX[:count], torch.full((count,), 0.1, dtype=dtype)
    eager = SCATTERS[name]
    assert share(eager, eager, index, weights) <= 0.5
    if name != "bincount":
        assert share(eager, lambda i, w: eager(i, w.double()).to(dtype), index, weights) <= 0.5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("terms", [3, 30])
def test_sums_by_atomic_operations_of_16_bits(dtype: torch.dtype, terms: int) -> None:
    """As PyTorch adds them on a device: each addition is rounded, in an order that nobody knows."""
    index, source = torch.randint(0, 40, (40 * terms,)), drawn(40 * terms, 32, dtype=dtype)

    def eager(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(40, 32, dtype=x.dtype).index_add(0, i, x)

    def one_by_one(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(40, 32, dtype=dtype)
        for number in torch.randperm(len(i)).tolist():
            found[i[number]] += x[number]
        return found

    def all_but_one(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return eager(i[1:], x[1:])

    assert share(eager, eager, index, source) <= 0.5
    assert share(eager, one_by_one, index, source) <= 1.0
    assert share(eager, all_but_one, index, source) > 1.0


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """In float32 between its products."""
    scores = q.float() @ k.float().transpose(1, 2) / 8
    return (torch.softmax(scores, -1) @ v.float()).to(q.dtype)


def narrow_attention(dtype: torch.dtype) -> Function:
    """With probabilities of a type."""
    return lambda q, k, v: (
        torch.softmax(q.float() @ k.float().transpose(1, 2) / 8, -1).to(dtype).float() @ v.float()
    ).to(q.dtype)


def test_operands_of_16_bits() -> None:
    """Probabilities of the inputs' type are customary, those of a coarser one are not."""
    q, k, v = (drawn(2, 64, 64 + 2 * number, dtype=torch.float16)[:, :, :64] for number in range(3))
    own, coarse = narrow_attention(torch.float16), narrow_attention(torch.bfloat16)
    assert share(attention, own, q, k, v) <= 0.5
    assert share(attention, coarse, q, k, v) > 1.0
    assert share(attention, own, q, k, v, mixed_precision=False) > 1.0


def with_slopes(to: Function) -> Function:
    """Attention with a slope for each head (ALiBi); `to` is done to its probabilities."""
    distance = torch.arange(64)[:, None] - torch.arange(64)

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        scores = q.float() @ k.float().transpose(1, 2) / 8 - slopes[:, None, None] * distance.abs()
        return (to(torch.softmax(scores, -1)) @ v.float()).to(q.dtype)

    return model


def with_bias(to: Function) -> Function:
    """Attention with a number in float32 for each score; `to` is done to its probabilities."""

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        scores = q.float() @ k.float().transpose(1, 2) / 8 + bias
        return (to(torch.softmax(scores, -1)) @ v.float()).to(q.dtype)

    return model


def with_angles(to: Function) -> Function:
    """Scores of queries and keys that were turned by angles in float32; `to` is done to the turned ones."""

    def model(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        q, k = (each.float() * cos + each.float().roll(32, -1) * sin for each in (q, k))
        return to(q) @ to(k).transpose(1, 2)

    return model


def with_weights(to: Function) -> Function:
    """A norm and a layer whose weights are float32; `to` is done to what the layer multiplies."""

    def model(x: torch.Tensor, scale: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return to(torch.nn.functional.rms_norm(x.float(), x.shape[-1:], scale)) @ weight

    return model


def test_operands_of_16_bits_beside_small_wider_tensors() -> None:
    """Slopes, angles and weights of a norm leave an operand its type; a wide matrix beside it does not."""
    q, k, v = (drawn(2, 64, 64 + 2 * number, dtype=torch.bfloat16)[:, :, :64] for number in range(3))
    slopes, cos, sin = torch.tensor([0.25, 0.0625]), drawn(64, 64).cos(), drawn(64, 64).sin()

    def own(x: torch.Tensor) -> torch.Tensor:
        return x.bfloat16().float()

    def coarse(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float8_e4m3fn).float()

    attention_bias = drawn(2, 64, 64)
    makers = (
        (with_slopes, (q, k, v, slopes)),
        (with_angles, (q, k, cos, sin)),
        (with_bias, (q[..., :32], k[..., :32], v, attention_bias)),
    )
    for make, inputs in makers:
        assert share(make(torch.clone), make(own), *inputs) <= 0.6
        assert share(make(torch.clone), make(coarse), *inputs) > 1.0
        assert share(make(torch.clone), make(own), *inputs, mixed_precision=False) > 1.0
    x, wide = drawn(40, 64, dtype=torch.bfloat16), (drawn(64), drawn(64, 50))
    assert share(with_weights(torch.clone), with_weights(own), x, *wide) > 1.0
    # A wide matrix stays wide, however many numbers of 16 bits it meets: scaled products, products of them.
    x, square = drawn(80, 48, dtype=torch.bfloat16), drawn(48, 48)
    scaled: Function = lambda x, w: (x.float() @ w) * 0.125  # noqa: E731
    assert share(scaled, lambda x, w: scaled(x, own(w)), x, square) > 1.0
    twice: Function = lambda x, w: (y := x.float() @ w) @ y.mT  # noqa: E731
    assert share(twice, lambda x, w: own(y := x.float() @ w) @ own(y).mT, x, square) > 1.0
    assert share(with_slopes(torch.clone), with_slopes(own), q.float(), k.float(), v, slopes) > 1.0


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    """Squares and their mean in float32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def rms_norm_in_parts(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The sum of the squares added up in a type."""
    parts = x.float().square().unflatten(-1, (-1, 32)).sum(-1).to(dtype)
    total = torch.zeros(x.shape[0], dtype=dtype)
    for part in parts.unbind(-1):
        total = total + part
    return (x.float() * torch.rsqrt(total.float()[:, None] / x.shape[1] + 1e-6)).to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_row_that_is_off_by_a_factor(dtype: torch.dtype) -> None:
    """Each element is within its own bound."""
    x = drawn(20, 1024, dtype=dtype)
    assert share(rms_norm, lambda x: rms_norm_in_parts(x, torch.float32), x) <= 0.5
    assert share(rms_norm, lambda x: rms_norm_in_parts(x, torch.bfloat16), x) > 1.0


STORED: dict[str, Function] = {
    "mean": lambda x: x * torch.rsqrt(_stored(x.square().mean(-1, keepdim=True)) + 1e-6),
    "root": lambda x: x / _stored((x.square().mean(-1, keepdim=True) + 1e-6).sqrt()),
    "reciprocal": lambda x: x * _stored(torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)),
}


def _stored(values: torch.Tensor) -> torch.Tensor:
    return values.bfloat16().float()


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_a_statistic_is_stored_once(name: str) -> None:
    """In the type of the output, on rows whose values are many, few, or neighbours in that type."""
    for number, columns in enumerate((33, 64, 288, 1024) * 3):
        x = torch.randn(64, columns, generator=torch.Generator().manual_seed(number)).bfloat16()
        near = (x[:, :1].float() * torch.linspace(0.5, 1.0, columns)).bfloat16()
        for values in (x, near, x.abs() + 0.25):
            stored = STORED[name]
            assert share(rms_norm, lambda x: stored(x.float()).bfloat16(), values) <= 1.0  # noqa: B023


def test_rows_of_one_value_are_rounded_alike() -> None:
    """That is no factor."""
    x = drawn(20, 1, dtype=torch.bfloat16).expand(20, 1024).contiguous()
    assert share(rms_norm, lambda x: rms_norm_in_parts(x, torch.float32), x) <= 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_rows_of_one_value_are_rounded_alike_on_the_way(dtype: torch.dtype) -> None:
    """What is stored of them is off by one factor, which weights do not hide."""

    def norm(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x + y, (x.shape[-1],), weight, 1e-6)

    def stored(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = (x + y).float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6).to(dtype)
        return (wide * scale.float()).to(dtype) * weight

    for number in range(8):
        torch.manual_seed(number)
        x, y = (torch.randn(64, 1).expand(64, 256).contiguous().to(dtype) for _ in range(2))
        weight = torch.randn(256).to(dtype)
        assert share(norm, stored, x, y, weight) <= 0.9
        assert share(norm, lambda *inputs: stored(*inputs) * 1.02, x, y, weight) > 1.0


def gates(x: torch.Tensor) -> torch.Tensor:
    """The four largest of each row, as shares of their sum, in their places."""
    values, places = x.float().softmax(-1).topk(4, -1)
    return torch.zeros(x.shape).scatter(-1, places, values / values.sum(-1, keepdim=True))


def first_gates(x: torch.Tensor) -> torch.Tensor:
    """The same by repeated choices of the first of equal elements."""
    shares = x.float().softmax(-1)
    left, kept = shares.clone(), torch.zeros(x.shape)
    for _ in range(4):
        place = left.argmax(-1, keepdim=True)
        kept.scatter_(-1, place, shares.gather(-1, place))
        left.scatter_(-1, place, -1.0)
    return kept / kept.sum(-1, keepdim=True)


def test_of_equal_elements_any_may_be_chosen() -> None:
    """Also where nothing returns the index: elements that the choice changes have a wider bound."""
    x = torch.randn(501, 64, generator=torch.Generator().manual_seed(3)).bfloat16()
    expected = gates(x)
    assert not torch.allclose(first_gates(x), expected)  # some are equal
    assert share(gates, first_gates, x) <= 0.9
    assert share(gates, lambda x: first_gates(x.roll(1, 0)).roll(-1, 0) * 0.999, x) > 1.0
    assert share(gates, lambda x: first_gates(x).where(x != x.amax(), 0.0), x) > 1.0


def delta_rule(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """Step by step."""
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2]), []
    for t in range(q.shape[1]):
        error = beta[:, t, None] * (v[:, t] - (k[:, t, :, None] * state).sum(1))
        state = state + k[:, t, :, None] * error[:, None]
        out.append((q[:, t, :, None] * state).sum(1))
    return torch.stack(out, 1)


def chunked_delta_rule(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """Chunks of 32 by a triangular solve, as everybody has it."""
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2]), []
    for at in range(0, q.shape[1], 32):
        a, b, c, d = (each[:, at : at + 32] for each in (q, k, v, beta))
        system = torch.eye(a.shape[1]) + ((b @ b.mT) * d[:, :, None]).tril(-1)
        solved = torch.linalg.solve_triangular(system, d[:, :, None] * (c - b @ state), upper=False)
        out.append(a @ state + (a @ b.mT).tril() @ solved)
        state = state + b.mT @ solved
    return torch.cat(out, 1)


def gated(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Gated linear attention, step by step."""
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2]), []
    for t in range(q.shape[1]):
        state = state * gate[:, t, :, None] + k[:, t, :, None] * v[:, t, None, :]
        out.append((q[:, t, :, None] * state).sum(1))
    return torch.stack(out, 1)


def chunked_gated(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Chunks of 16, with sums of logarithms."""
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2]), []
    for at in range(0, q.shape[1], 16):
        a, b, c, d = (each[:, at : at + 16] for each in (q, k, v, gate))
        decay = d.log().cumsum(1)
        inner = ((a * decay.exp()) @ (b * (-decay).exp()).mT).tril()
        out.append(inner @ c + (a * decay.exp()) @ state)
        kept = (b * (decay[:, -1:] - decay).exp()).mT
        state = state * decay[:, -1].exp()[:, :, None] + kept @ c
    return torch.cat(out, 1)


def retained(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """Linear attention with one decay for a step, exp(gate)."""
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2]), []
    for t in range(q.shape[1]):
        state = state * gate[:, t].exp()[:, None, None] + k[:, t, :, None] * v[:, t, None, :]
        out.append((q[:, t, :, None] * state).sum(1))
    return torch.stack(out, 1)


def chunked_retained(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor, *, size: int
) -> torch.Tensor:
    """In chunks, by differences of sums of gates."""
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2]), []
    for at in range(0, q.shape[1], size):
        a, b, c, d = (each[:, at : at + size] for each in (q, k, v, gate))
        total = d.cumsum(1)
        gap = (total[:, :, None] - total[:, None, :]).tril()
        out.append(((a @ b.mT) * gap.exp()).tril() @ c + (a @ state) * total.exp()[:, :, None])
        last = total[:, -1:]
        state = state * last.exp()[:, :, None] + (b * (last - total).exp()[:, :, None]).mT @ c
    return torch.cat(out, 1)


@pytest.mark.parametrize("size", slow_unless((32).__eq__, [16, 32, 64]))
def test_decays_of_a_chunk(size: int) -> None:
    """Strong ones make large sums, whose differences are small; products in tf32 are too coarse as before."""
    q, k, v = (drawn(6, 77, 20), drawn(6, 77, 21)[:, :, :20], drawn(6, 77, 22)[:, :, :20])
    gate = -torch.nn.functional.softplus(drawn(6, 77) - 1)
    for decays in (gate, torch.where(drawn(77, 6).T < 0, gate.amax(), gate.amin())):
        (expected,) = expectation(retained, (q, k, v, decays))
        assert deviation(chunked_retained(q, k, v, decays, size=size), expected).share <= 0.9
        assert deviation(chunked_retained(cut(q), cut(k), v, decays, size=size), expected).share > 1.0


def nearly(x: torch.Tensor) -> torch.Tensor:
    """Rows whose elements are nearly the same."""
    return x[..., :1] * (1 - torch.arange(x.shape[-1]) * 2.0**-12)


@pytest.mark.slow
@pytest.mark.parametrize("near", slow_unless(True.__eq__, [False, True]))
@pytest.mark.parametrize(
    ("model", "candidate"), [(delta_rule, chunked_delta_rule), (gated, chunked_gated)], ids=["delta", "gated"]
)
def test_recurrences_in_chunks(model: Function, candidate: Function, near: bool) -> None:
    """Also on inputs for which the chunks are badly conditioned."""
    q, k, v, last = (drawn(2, 128, 16 + number)[:, :, :16] for number in range(4))
    if near:
        q, k, v, last = (nearly(each) for each in (q, k, v, last))
    k = torch.nn.functional.normalize(k, dim=-1)
    last = last.sigmoid()[:, :, 0] if model is delta_rule else last.sigmoid() * 0.5 + 0.5
    assert share(model, candidate, q, k, v, last) <= 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_scale_of_a_product(dtype: torch.dtype) -> None:
    """A kernel may scale an operand and round it to 16 bits; where nothing is scaled, that is an error."""
    q, k, v = (drawn(300, 6, 64 + number, dtype=dtype)[..., :63] for number in range(3))

    def retention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum("bik,bjk->bij", q.float(), k.float()) * 63**-0.5
        return (scores.tril() @ v.float()).to(q.dtype)

    def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (q * 63**-0.5).float() @ k.float().mT
        return (scores.tril().to(dtype).float() @ v.float()).to(dtype)

    def product(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q.float() @ k.float().mT

    assert share(retention, kernel, q, k, v) <= 0.8
    assert share(product, lambda q, k: (q * 0.7).float() @ k.float().mT / 0.7, q, k) > 1.0


GRAMS: dict[str, Function] = {
    "divided": lambda x: x.float() @ x.float().mT / x.shape[-1],
    "in place": lambda x: (x.float() @ x.float().mT).div_(x.shape[-1]),
    "summed": lambda x: (x.float()[:, None] * x.float()[:, :, None]).sum(-1) / x.shape[-1],
    "more": lambda x: ((x.float() @ x.float().mT / x.shape[-1]).mT.contiguous() * 1.5 + 1).flatten(),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", GRAMS)
def test_products_of_exact_operands(name: str, dtype: torch.dtype) -> None:
    """Rounding operands that have 16 bits costs nothing: results, terms and partial sums are in float32."""
    model, x = GRAMS[name], drawn(2, 20, 40, dtype=dtype)
    terms = x.float()[:, None] * x.float()[:, :, None]

    def finished(products: torch.Tensor) -> torch.Tensor:
        means = products / x.shape[-1]
        return (means.mT.contiguous() * 1.5 + 1).flatten() if name == "more" else means

    assert share(model, model, x) <= 0.5
    assert share(model, lambda _: finished(terms.flip(-1).sum(-1)), x) <= 0.5
    assert share(model, lambda _: model(x).to(dtype).float(), x) > 1.0
    assert share(model, lambda _: finished(terms.to(dtype).float().sum(-1)), x) > 1.0
    partial = [part.sum(-1).to(dtype).float() for part in terms.split(8, -1)]
    assert share(model, lambda _: finished(torch.stack(partial).sum(0)), x) > 1.0


def test_sums_of_segments() -> None:
    """Differences of one running sum, as kernels for recurrences have them."""
    x, y = drawn(192) * 4.0 - 2.0, drawn(192, 32)
    lower = torch.ones(192, 192).tril() > 0

    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        sums = x[:, None].repeat(1, 192).tril(-1).cumsum(0)
        return torch.where(lower, sums, float("-inf")).exp() @ y

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        running = x.cumsum(0)
        return torch.where(lower, running[:, None] - running[None, :], float("-inf")).exp() @ y

    assert share(model, kernel, x, y) <= 0.8
    assert share(model, lambda x, y: kernel(x * 1.0001, y), x, y) > 1.0


FUSED: dict[str, tuple[Function, Function]] = {
    "addcmul": (lambda a, b, c: torch.addcmul(a, b, c, value=0.7), lambda a, b, c: a + b * (0.7 * c)),
    "addcdiv": (lambda a, b, c: torch.addcdiv(a, b, c, value=0.7), lambda a, b, c: a + b * (0.7 / c)),
    "lerp": (lambda a, b, c: torch.lerp(a, b, c.sigmoid()), lambda a, b, c: b + (1 - c.sigmoid()) * (a - b)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FUSED)
def test_products_that_are_added(name: str, dtype: torch.dtype) -> None:
    """Also where the sum is much smaller than what is added."""
    eager, other = FUSED[name]
    a, b, c = (drawn(64, 500 + number, dtype=dtype)[:, :500] for number in range(3))
    if name != "lerp":
        a = a - eager(a, b, c) * (1 - 2.0**-9)
    assert share(eager, eager, a, b, c) <= 1.0
    assert share(eager, lambda a, b, c: other(a.float(), b.float(), c.float()).to(dtype), a, b, c) <= 1.0
    assert share(eager, lambda a, b, c: eager(a, b, c * 1.02), a, b, c) > 1.0


def test_variance_by_updates() -> None:
    """Welford's algorithm on values that are close together."""
    x = 1 + 1e-2 * drawn(64, 512)

    def welford(x: torch.Tensor) -> torch.Tensor:
        mean, squares = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
        for count in range(x.shape[1]):
            step = x[:, count] - mean
            mean = mean + step / (count + 1)
            squares = squares + step * (x[:, count] - mean)
        return squares / (x.shape[1] - 1)

    assert share(lambda x: x.var(1), welford, x) <= 1.0
    assert share(lambda x: x.var(1), lambda x: x.var(1, correction=0), x) > 1.0


@pytest.mark.parametrize("count", [2, 3, 4])
def test_one_pass_over_a_few_values(count: int) -> None:
    """Now and then they lie close together, so that the mean of the squares cancels."""

    def norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (count,))

    def one_pass(x: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(x.square().mean(-1, keepdim=True) - mean.square() + eps)

    x = drawn(2000, count)
    assert share(norm, one_pass, x) <= 0.7
    assert share(norm, lambda x: one_pass(x, 1e-4), x) > 1.0


def recurrence(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Linear attention step by step."""
    state, out = torch.zeros(16, 16), []
    for i in range(len(q)):
        state = state * 0.9 + k[i].float()[:, None] * v[i].float()[None, :]
        out.append((state * q[i].float()[:, None]).sum(0))
    return torch.stack(out).to(q.dtype)


def last_state(_: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """What it ends with, in float32."""
    state = torch.zeros(16, 16)
    for i in range(len(k)):
        state = state * 0.9 + (k[i].float()[:, None] * v[i].float()[None, :] * 0.97)
        state = state + 1e-30 * state.sum(0)  # an operation that is counted
    return state


@pytest.mark.slow
def test_a_recurrence_of_few_steps() -> None:
    """One step of what is a recurrence elsewhere takes its operands in 16 bits as well."""

    def chunk(_: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        decayed = k.float() * (0.9 ** torch.arange(len(k) - 1, -1, -1))[:, None] * 0.97
        return decayed.to(k.dtype).float().T @ v.float()

    allowance = Allowance()
    for steps in (100, 5, 1):
        inputs = [drawn(steps, 16 + number, dtype=torch.bfloat16)[:, :16] for number in range(3)]
        (expected,) = expectation(last_state, inputs, allowance=allowance)
        assert deviation(chunk(*inputs), expected).share <= 0.5
        assert deviation(chunk(*inputs) * 1.2, expected).share > 1.0
    (alone,) = expectation(last_state, inputs)
    assert deviation(chunk(*inputs), alone).share > 1.0


@pytest.mark.slow
@pytest.mark.parametrize("steps", [5, 40])
def test_chunks_of_a_recurrence_in_16_bits(steps: int) -> None:
    """Linear attention step by step, against products of matrices whose operands are rounded."""
    q, k, v = (drawn(steps, 16 + number, dtype=torch.bfloat16)[:, :16] for number in range(3))

    def chunk(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, weights: float = 0.9) -> torch.Tensor:
        distance = torch.arange(len(q))[:, None] - torch.arange(len(q))[None, :]
        decay = torch.where(distance >= 0, weights ** distance.clamp(min=0).float(), 0.0)
        scores = (q.float() @ k.float().T * decay).to(q.dtype)
        return (scores.float() @ v.float()).to(q.dtype)

    assert share(recurrence, chunk, q, k, v) <= 1.0
    assert share(recurrence, lambda q, k, v: chunk(q, k, v, weights=0.88), q, k, v) > 1.0


def delta_state(k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """The state that the delta rule ends with, step by step."""
    state = torch.zeros(k.shape[1], v.shape[1])
    for key, value, rate in zip(k.float(), v.float(), beta.float(), strict=True):
        state = 0.95 * state
        state = state + key[:, None] * (rate * (value - key @ state))
    return state


def chunked_delta_state(
    k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, *, decays: float = 0.95
) -> torch.Tensor:
    """Chunks of 32, every intermediate result in the type of the inputs, as flash linear attention has it."""

    def narrow(x: torch.Tensor) -> torch.Tensor:
        return x.to(k.dtype).float()

    state, steps = torch.zeros(k.shape[1], v.shape[1]), torch.arange(1, 33)
    decay = decays ** (steps[:, None] - steps).clamp(min=0)
    for keys, values, rates in zip(*(x.float().split(32) for x in (k, v, beta[:, None])), strict=True):
        system = torch.eye(32) + (keys @ keys.mT * decay * rates).tril(-1)
        inverse = narrow(torch.linalg.inv(system))
        new = narrow(inverse @ narrow(rates * values))
        old = narrow(inverse @ narrow(rates * keys * decays ** steps[:, None]))
        new = narrow(new - old @ narrow(state))
        state = state * decays**32 + narrow(keys * decays ** (32 - steps)[:, None]).mT @ new
    return state


@pytest.mark.slow
@pytest.mark.parametrize("near", slow_unless(True.__eq__, [False, True]))
def test_states_in_16_bits(near: bool) -> None:
    """What is large among other elements is off by as much, and what is small after it was large."""
    right, wrong = [], []
    for seed in range(2):
        numbers = torch.Generator().manual_seed(seed)
        k, v = (torch.randn(64, 32, generator=numbers) for _ in range(2))
        if near:
            k, v = nearly(k), nearly(v)
        k, v = torch.nn.functional.normalize(k, dim=-1).bfloat16(), v.bfloat16()
        beta = torch.rand(64, generator=numbers).bfloat16()
        (expected,) = expectation(delta_state, (k, v, beta))
        right.append(deviation(chunked_delta_state(k, v, beta), expected).share)
        wrong.append(deviation(chunked_delta_state(k, v, beta, decays=0.9), expected).share)
    assert max(right) <= 0.7
    assert near or min(wrong) > 10.0


def test_resampled_images() -> None:
    """Weights from coordinates in float32, and from better ones."""
    x = drawn(1, 2, 24, 24)

    def smaller(x: torch.Tensor) -> torch.Tensor:
        options = {"size": (16, 14), "mode": "bicubic", "antialias": True}
        return torch.nn.functional.interpolate(x, **options)  # type: ignore[arg-type]

    assert share(smaller, smaller, x) <= 0.5
    assert share(smaller, lambda x: smaller(x) * (1 + 1e-5), x) > 1.0


def test_results_of_8_bits() -> None:
    """Quantised in float32: the same number, or its neighbour."""
    x = drawn(64, 128, dtype=torch.bfloat16)

    def quantise(x: torch.Tensor) -> torch.Tensor:
        scale = x.float().abs().amax(-1, keepdim=True) / 448
        return (x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn)

    assert share(quantise, quantise, x) <= 0.5
    assert share(quantise, lambda x: quantise(x).float().mul(0.7).to(torch.float8_e4m3fn), x) > 1.0


EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_results_of_8_bits_are_rounded_once(dtype: torch.dtype) -> None:
    """By another order in float32; not through another type, not towards zero, no number further."""
    largest = torch.finfo(dtype).max
    narrow = "e4" in str(dtype)
    other = torch.float8_e5m2 if narrow else torch.float8_e4m3fn

    def quantise(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide / (wide.abs().amax(-1, keepdim=True) / largest)).clamp(-largest, largest).to(dtype)

    def reciprocal(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * (largest / wide.abs().amax(-1, keepdim=True))).clamp(-largest, largest).to(dtype)

    def saturated(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(-largest, largest).to(dtype)

    def towards_zero(x: torch.Tensor) -> torch.Tensor:
        mask = -(1 << (20 if narrow else 21))
        return saturated((x.view(torch.int32) & mask).view(torch.float32))

    def one_number_further(x: torch.Tensor) -> torch.Tensor:
        right = quantise(x).view(torch.uint8)
        right[3, 7] += 1
        return right.view(dtype)

    for x in (drawn(64, 128), drawn(64, 128, dtype=torch.bfloat16)):
        assert share(quantise, reciprocal, x) <= 1.0
        assert share(quantise, lambda x: quantise(x).float().to(other).float().to(dtype), x) > 1.0
        assert share(quantise, one_number_further, x) > 1.0
    x = drawn(64, 128) * largest / 3
    assert share(saturated, saturated, x) == 0.0
    assert share(saturated, towards_zero, x) > 1.0
    assert share(saturated, lambda x: x.clamp(-largest / 2, largest / 2).to(dtype), x) > 1.0


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_edges_between_numbers_of_8_bits(dtype: torch.dtype) -> None:
    """What is only converted has one result, to even; next to an edge, what is computed may have either."""
    step = 0.125 if "e4" in str(dtype) else 0.25  # torch.finfo says 0.125 of e5m2fnuz
    edges = torch.tensor([1 + step / 2, 1 + 3 * step / 2])
    below, above = torch.nextafter(edges, torch.zeros(2)), torch.nextafter(edges, 2 * edges)

    def converted(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype)

    def halved(x: torch.Tensor) -> torch.Tensor:
        return (x / 3 * 1.5).to(dtype)

    assert share(converted, converted, edges) == 0.0
    assert share(converted, lambda _: below.to(dtype), edges) > 1.0
    assert share(converted, lambda _: above.to(dtype), edges) > 1.0
    for other in (below, above):
        assert share(halved, lambda _, other=other: (other / 2).to(dtype), edges) <= 1.0
    assert share(halved, lambda _: (above / 2).to(dtype), edges * (1 - 1e-4)) > 1.0


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_beyond_the_range_of_8_bits(dtype: torch.dtype) -> None:
    """Infinity, NaN and what is too large become what PyTorch makes of them."""
    values = torch.tensor([float("inf"), -float("inf"), float("nan"), 1e9, -1e9, 1.0])

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return (x * 0.3).to(dtype)

    assert share(scaled, scaled, values) == 0.0
    for place in range(5):
        others = values.clone()
        others[place] = 1.0
        assert share(scaled, lambda _, others=others: scaled(others), values) > 1.0


def test_values_between_numbers_of_8_bits_are_read_rounded() -> None:
    """What is computed from a quantised value carries its rounding; a copy of an input in 8 bits has none."""
    x, w = drawn(32, 64), drawn(64, 32)

    def fake(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x * 1.1).to(torch.float8_e4m3fn).float() @ w

    def wide(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float8_e4m3fn).float() @ w

    def given(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x]).float() @ w

    assert share(fake, fake, x, w) <= 1.0
    assert share(fake, lambda x, w: wide(x * 0.5, w), x, w) > 1.0
    exact = x.to(torch.float8_e4m3fn)
    assert share(given, given, exact, w) <= 0.5
    assert share(given, lambda x, w: given(x, w.bfloat16().float()), exact, w) > 1.0


def cut_off(values: torch.Tensor, bits: int) -> torch.Tensor:
    """float32 without its last bits: 13 for tf32, 16 for bfloat16."""
    return (values.contiguous().view(torch.int32) & -(1 << bits)).view(torch.float32)


@pytest.mark.parametrize("positive", [False, True])
def test_products_in_tf32(positive: bool) -> None:
    """Accepted where the setting says so, also where all errors have one sign; coarser ones never."""
    a, b = drawn(64, 96), drawn(96, 48)
    if positive:
        a, b = a.abs(), b.abs()
    (allowed,) = expectation(torch.matmul, (a, b), allowance=Allowance(tf32_products=True))
    (usual,) = expectation(torch.matmul, (a, b))
    product = cut_off(a, 13) @ cut_off(b, 13)
    assert deviation(product, allowed).passed
    assert deviation(product, usual).share > 10
    assert not deviation(cut_off(a, 16) @ cut_off(b, 16), allowed).passed


def gauss_jordan(a: torch.Tensor, *, pivoting: bool = True) -> torch.Tensor:
    """Inverses of a batch, row operations on the matrix and the identity beside it."""
    size, batch = a.shape[-1], torch.arange(a.shape[0])
    rows = torch.cat([a, torch.eye(size).expand_as(a)], -1)
    for column in range(size):
        if pivoting:
            pivot = rows[:, column:, column].abs().argmax(1) + column
            rows[batch, pivot], rows[:, column] = rows[:, column].clone(), rows[batch, pivot]
        rows[:, column] /= rows[:, column, column, None].clone()
        factors = rows[:, :, column, None].clone()
        factors[:, column] = 0.0
        rows -= factors * rows[:, None, column]
    return rows[:, :, size:]


FACTORIZATIONS: dict[str, tuple[Function, Function]] = {
    "inverse": (torch.linalg.inv, gauss_jordan),
    "solution": (torch.linalg.solve, lambda a, b: gauss_jordan(a) @ b),
    "triangular": (
        lambda a, b: torch.linalg.solve_triangular(a.tril() / 4 + 2 * torch.eye(a.shape[-1]), b, upper=False),
        lambda a, b: torch.linalg.inv(a.tril() / 4 + 2 * torch.eye(a.shape[-1])) @ b,
    ),
    "cholesky": (
        lambda a: torch.linalg.cholesky(a @ a.mT + torch.eye(a.shape[-1])),
        lambda a: torch.linalg.qr(torch.cat([a.mT, torch.eye(a.shape[-1]).expand_as(a)], -2), "r")[1].mT,
    ),
}


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_other_stable_algorithms_for_matrices(name: str) -> None:
    """Off by units of the largest element, among thousands of matrices some nearly singular."""
    model, other = FACTORIZATIONS[name]
    for size in (3, 16):
        a = drawn(2000 // size, size, size)
        inputs = (a,) if name in ("inverse", "cholesky") else (a, drawn(a.shape[0], size, 4))
        signs = torch.diagonal(other(a), dim1=-2, dim2=-1).sign()[:, None] if name == "cholesky" else 1.0
        assert share(model, model, *inputs) <= 0.6
        assert share(model, lambda *inputs: other(*inputs) * signs, *inputs) <= 0.8  # noqa: B023
        coarse = (inputs[0].bfloat16().float(), *inputs[1:])
        assert share(model, lambda *_: model(*coarse), *inputs) > 10.0  # noqa: B023
    a = drawn(600, 3, 3)
    assert share(torch.linalg.inv, lambda a: gauss_jordan(a, pivoting=False), a) > 1.0


def fourier_sums(x: torch.Tensor) -> torch.Tensor:
    """One term after the other, in float32, with exact factors rounded once."""
    size = x.shape[-1]
    angles = torch.arange(size // 2 + 1)[:, None].double() * torch.arange(size) * (-2 * torch.pi / size)
    factors = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
    total = torch.zeros(*x.shape[:-1], size // 2 + 1, dtype=torch.complex64)
    for term in range(size):
        total = total + x[..., term, None] * factors[:, term]
    return total


@pytest.mark.parametrize("size", [47, 128, 300])
def test_fourier_transforms_as_sums(size: int) -> None:
    """Right, if less accurate than a fast transform; values of fewer digits are not."""
    x = drawn(200, size) + 1.0
    assert share(torch.fft.rfft, torch.fft.rfft, x) <= 0.6
    assert share(torch.fft.rfft, fourier_sums, x) <= 0.8
    assert share(torch.fft.rfft, lambda x: fourier_sums(cut(x)), x) > 2.0


COMPLEX: dict[str, tuple[Function, Function]] = {
    "product": (lambda a, b: a * b, lambda a, b: b * a * (1 + 3e-6)),
    "conjugate": (lambda a, b: a.conj() * b, lambda a, b: a * b),
    "adjoint": (lambda a, b: a.mH @ b, lambda a, b: a.mT @ b),
    "physical": (lambda a, b: a.conj().resolve_conj() + b, lambda a, b: a + b),
    "negative view": (lambda a, b: a.conj().imag * b.real, lambda a, b: a.imag * b.real),
    "real input": (
        lambda a, b: torch.fft.fft(a.real + 0j * b),
        lambda a, b: torch.fft.fft(a.real + 0j * b) + 3e-4j,
    ),
    "hermitian": (lambda a, b: torch.fft.hfft(a), lambda a, b: torch.fft.irfft(a) * (2 * a.shape[-1] - 2)),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name: str) -> None:
    """Each part is off by units of both; what PyTorch conjugates or negates later is not forgotten."""
    a, b = (torch.view_as_complex(drawn(96 + number, 96, 2)[:96]) for number in range(2))
    right, wrong = COMPLEX[name]
    assert share(right, right, a, b) <= 0.8
    assert share(right, wrong, a, b) > 2.0


EXACT_STEPS = {
    "half": lambda x: (x.float() * 0.5).round(),
    "scaled by a power of two": lambda x: (x.float() / 16.0).floor(),
    "a mean of few": lambda x: ((x > 0).float().mean(1) >= 0.5).float(),
}
"""On whole numbers nothing is rounded before the step, in whatever order it is computed."""


@pytest.mark.parametrize("name", EXACT_STEPS)
def test_a_step_of_exact_values_has_one_outcome(name: str) -> None:
    """Ties go where `Model` has them go: the other neighbour is wrong."""
    x = torch.arange(-40.0, 40.0).reshape(10, 8).bfloat16()
    x[0, :4] = 9.0  # half of this row is above 0
    (expected,) = expectation(EXACT_STEPS[name], (x,))
    assert deviation(EXACT_STEPS[name](x), expected).passed
    other = {
        "half": (x.float() * 0.5 + 0.5).floor(),
        "scaled by a power of two": (x.float() / 16.0).ceil() - 1.0,
        "a mean of few": ((x > 0).float().mean(1) > 0.5).float(),
    }
    assert not deviation(other[name], expected).passed


@pytest.mark.parametrize("scale", [0.1, 1.0 / 3.0])
def test_a_step_of_rounded_values_may_go_either_way(scale: float) -> None:
    """The product is rounded: whether it is at the tie depends on how it is computed."""
    x = (torch.arange(1.0, 65.0) + 0.5) / scale
    (expected,) = expectation(lambda x: (x * scale).round(), (x,))
    assert deviation((x * scale).round(), expected).passed
    assert deviation((x.double() * (1 + 1e-8) * scale).round().float(), expected).passed
    assert deviation((x.double() * (1 - 1e-8) * scale).round().float(), expected).passed


def decayed(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The state after the last position, with one weight for each distance to it."""
    return torch.exp(-a * torch.arange(len(v) - 1, -1, -1)) @ v


def decayed_by_powers(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same with powers."""
    return torch.exp(-a) ** torch.arange(len(v) - 1, -1, -1) @ v


def decayed_everywhere(a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """After each position: a triangular matrix of weights."""
    at = torch.arange(len(v))
    distance = (at[:, None] - at).clamp(min=0)
    return (torch.exp(-a * distance) * (at[:, None] >= at)) @ v


def step_by_step(a: torch.Tensor, v: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
    """A state that is multiplied by one factor at each position."""
    decay, state, states = torch.exp(-a) * factor, torch.zeros_like(v[0]), []
    for row in v:
        state = state * decay + row
        states.append(state)
    return torch.stack(states)


@pytest.mark.parametrize("model", [decayed, decayed_by_powers, decayed_everywhere])
@pytest.mark.parametrize("rate", [0.004, 0.0625, 0.0117])
@pytest.mark.parametrize("positions", [64, 300])
def test_decays_of_positions(model: Function, rate: float, positions: int) -> None:
    """By a recurrence, whose factor is as wrong as a fast exponential is; not with another factor."""
    a, v = torch.tensor(rate), drawn(positions, 64)
    last = slice(None) if model is decayed_everywhere else -1
    assert share(model, lambda a, v: step_by_step(a, v, 1 + 2.0**-22.5)[last], a, v) <= 1.0
    assert share(model, lambda a, v: step_by_step(a, v, 1 - 1e-5)[last], a, v) > 1.0


def test_what_is_no_series_has_the_usual_bound() -> None:
    """Of normal numbers, exp is as precise as it was."""
    x = drawn(40, 300)
    assert share(torch.exp, torch.exp, x) <= 0.3
    assert share(torch.exp, lambda x: x.exp() * (1 + 3e-6), x) > 1.0


def decoded(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """A product with weights in four bits, a scale and a zero point of 7 for each group of 32."""
    return x @ ((codes - 7.0) * scales.repeat_interleave(32, 0))


def zero_point_last(
    x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor, zero: float = 7.0
) -> torch.Tensor:
    """The same, of products with the codes themselves."""
    total = torch.zeros(len(x), codes.shape[1])
    for group, scale in enumerate(scales):
        sums, parts = torch.zeros_like(total), torch.zeros(len(x), 1)
        for column in range(32 * group, 32 * group + 32):
            sums = sums + x[:, column, None] * codes[column]
            parts = parts + x[:, column, None]
        total = total + scale * (sums - zero * parts)
    return total


@pytest.mark.parametrize("constant", [False, True])
def test_zero_points_that_are_subtracted_from_sums(constant: bool) -> None:
    """Also of equal values, whose sums are long; not with another zero point."""
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(0, 16, (256, 48), generator=generator).float()
    scales = torch.rand(8, 48, generator=generator) * 0.02 + 0.005
    x = drawn(24, 1).expand(24, 256).contiguous() if constant else drawn(24, 256)
    assert share(decoded, zero_point_last, x, codes, scales) <= 1.0
    assert share(decoded, lambda *a: zero_point_last(*a, zero=7.001), x, codes, scales) > 1.0


def test_activations_are_no_codes() -> None:
    """Zeros that a rectifier leaves are not the values of codes: digits that are cut off show as before."""
    x, w = drawn(64, 512), drawn(512, 64)

    def shorter(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        cut_off = [((each.view(torch.int32) + 0x40) & ~0x7F).view(torch.float32) for each in (x, w)]
        return torch.relu(cut_off[0] - 0.2) @ cut_off[1]

    def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x - 0.2) @ w

    assert share(model, lambda x, w: torch.relu(x - 0.2) @ w, x, w) <= 0.5
    assert share(model, shorter, x, w) > 1.0


def ctc(log_probs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """log_probs[steps, batch, classes], targets[batch, labels] -> [batch]: sums of paths, step by step."""
    states = torch.zeros(len(targets), 2 * targets.shape[1] + 1, dtype=torch.int64)
    states[:, 1::2] = targets
    skips = torch.zeros_like(states, dtype=torch.bool)
    skips[:, 3::2] = targets[:, 1:] != targets[:, :-1]
    nothing = torch.full(states.shape, -math.inf, dtype=log_probs.dtype)
    alpha = nothing.clone()
    alpha[:, :2] = log_probs[0].gather(1, states[:, :2])
    for step in log_probs[1:]:
        one, two = nothing.clone(), nothing.clone()
        one[:, 1:], two[:, 2:] = alpha[:, :-1], alpha[:, :-2]
        before = torch.stack([alpha, one, torch.where(skips, two, nothing)])
        top = before.amax(0)
        sums = (before - torch.where(top.isinf(), 0.0, top)).exp().sum(0)
        alpha = torch.where(top.isinf(), nothing, top + sums.log()) + step.gather(1, states)
    return -torch.logaddexp(alpha[:, -1], alpha[:, -2])


@pytest.mark.parametrize("steps", [64, 300])
def test_paths_that_are_added_step_by_step(steps: int) -> None:
    """Each way to compute `ctc_loss` rounds once a step at least; probabilities that are off show."""
    generator = torch.Generator().manual_seed(steps)
    logits = 2 * torch.randn(steps, 16, 28, generator=generator)
    targets = torch.randint(1, 28, (16, 12), generator=generator)
    lengths = torch.full((16,), steps), torch.full((16,), 12)

    def model(x: torch.Tensor) -> torch.Tensor:
        return F.ctc_loss(x.log_softmax(-1), targets, *lengths, reduction="none")

    (expected,) = expectation(model, [logits])
    log_probs = logits.log_softmax(-1)
    assert deviation(model(logits), expected).share < 0.7
    assert deviation(ctc(log_probs, targets), expected).share < 0.7
    assert deviation(ctc(log_probs + 1e-5, targets), expected).share > 1
    assert deviation(ctc(log_probs.half().float(), targets), expected).share > 1
