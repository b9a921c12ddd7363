"""What the state space is compared with: loops over time and over chunks in PyTorch."""

import torch

CHUNK = 64


def loop(
    x: torch.Tensor, width: torch.Tensor, b: torch.Tensor, c: torch.Tensor, rate: torch.Tensor
) -> torch.Tensor:
    """As the reference, step by step; states are at least float32."""
    kind = torch.promote_types(x.dtype, torch.float32)
    added, left = (x * width[..., None]).to(kind), b.to(kind)
    decay = torch.exp(-width.to(kind) * rate.to(kind))
    state = added.new_zeros(*x[:, 0].shape, b.shape[2])
    outputs = []
    for step in range(x.shape[1]):
        new = added[:, step, ..., None] * left[:, step, None, None]
        state = torch.addcmul(new, decay[:, step, :, None, None], state)
        outputs.append(state.to(x.dtype) @ c[:, step, None, :, None])
    return torch.stack(outputs, 1)[..., 0]


def chunked(
    x: torch.Tensor, width: torch.Tensor, b: torch.Tensor, c: torch.Tensor, rate: torch.Tensor
) -> torch.Tensor:
    """As the reference, with one product for all chunks, and a loop over chunks for their states alone."""
    batch, steps, heads, depth = x.shape
    padding = (0, 0, 0, -steps % CHUNK)
    pad = torch.nn.functional.pad
    kind = torch.promote_types(x.dtype, torch.float32)
    shape = (batch, -1, CHUNK, heads)
    added = pad(x * width[..., None], (0, 0, *padding)).view(*shape, depth)
    exponent = pad(width.to(kind) * rate.to(kind), padding).view(shape).cumsum(2)
    left, right = (pad(each, padding).view(batch, -1, CHUNK, b.shape[2]) for each in (b, c))
    below = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=x.device).tril()[..., None]
    since = (exponent[:, :, None] - exponent[:, :, :, None]).masked_fill(~below, -torch.inf)
    scores = ((right @ left.mT)[..., None] * torch.exp(since)).to(x.dtype)
    y = torch.einsum("bkijh,bkjhp->bkihp", scores, added)
    until = torch.exp(exponent - exponent[:, :, -1:]).to(x.dtype)
    new = torch.einsum("bkjn,bkjhp->bkhpn", left, added * until[..., None]).to(kind)
    state = torch.zeros_like(new[:, 0])
    before = []
    for chunk in range(new.shape[1]):
        before.append(state)
        state = state * torch.exp(-exponent[:, chunk, -1, :, None, None]) + new[:, chunk]
    states = torch.stack(before, 1).to(x.dtype)
    y = y + torch.einsum("bkin,bkhpn->bkihp", right, states) * torch.exp(-exponent).to(x.dtype)[..., None]
    return y.flatten(1, 2)[:, :steps]
