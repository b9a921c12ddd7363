"""AdamW whose moments are stored in 8 bits, one scale a block (Dettmers et al. 2021, arXiv:2110.02861)."""

import functools
import itertools

import torch

from kernels.adamw.reference import reference as adamw


@functools.cache
def code_book(*, signed: bool) -> tuple[float, ...]:
    """The paper's dynamic tree, sorted: 0, 1, and equally spaced values between powers of ten from 1e-7 on.

    Signed, a single one is between 1e-7 and 1e-6, and each power has twice as many as the one before, on
    either side of 0; unsigned, there are two at first. Codes are places in it.
    """
    sizes = [2**power * (1 if signed else 2) for power in range(7)]
    values = [
        10.0 ** (power - 6) * (0.1 + 0.9 * (place + 0.5) / size)
        for power, size in enumerate(sizes)
        for place in range(size)
    ]
    negative = [-value for value in reversed(values)] if signed else []
    return (*negative, 0.0, *values, 1.0)


def dequantise(code: torch.Tensor, scale: torch.Tensor, *, signed: bool) -> torch.Tensor:
    """code[blocks, block], scale[blocks] -> values[blocks, block]."""
    book = torch.tensor(code_book(signed=signed), dtype=torch.float32, device=code.device)
    return book[code.long()] * scale[:, None]


def quantise(values: torch.Tensor, *, signed: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """values[blocks, block] -> nearest codes[blocks, block] and scales[blocks], the largest magnitudes."""
    book = code_book(signed=signed)
    middles = [(left + right) / 2 for left, right in itertools.pairwise(book)]
    edges = torch.tensor(middles, dtype=torch.float32, device=values.device)
    scale = values.abs().amax(-1)
    share = values / scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
    return torch.bucketize(share, edges).to(torch.uint8), scale


def reference(
    p: torch.Tensor, g: torch.Tensor,
    m_code: torch.Tensor, m_scale: torch.Tensor, v_code: torch.Tensor, v_scale: torch.Tensor,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: float,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """p, g, codes [blocks, block], scales [blocks] -> p, m_code, m_scale, v_code, v_scale after the step."""
    m, v = dequantise(m_code, m_scale, signed=True), dequantise(v_code, v_scale, signed=False)
    p, m, v = adamw(p, g, m, v, lr, beta1, beta2, eps, weight_decay, step)
    return p, *quantise(m, signed=True), *quantise(v, signed=False)
