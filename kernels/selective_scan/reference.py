"""Selective scan of a state space (Gu and Dao 2023, arXiv:2312.00752, algorithm 2), as a loop over time."""

import torch


def reference(
    x: torch.Tensor,
    delta: torch.Tensor,
    z: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    rate: torch.Tensor,
    skip: torch.Tensor,
) -> torch.Tensor:
    """x, delta, z [batch, steps, channels], b, c [batch, steps, states], rate[channels, states] -> y as x.

    delta is what its projection returns, before softplus; rate is -A of the paper, which is not negative;
    skip[channels] is its D, and z the gate. States are at least float32.
    """
    kind = torch.promote_types(x.dtype, torch.float32)
    u, delta, b, c, rate = (each.to(kind) for each in (x, delta, b, c, rate))
    width = torch.nn.functional.softplus(delta)
    state = u.new_zeros(*u[:, 0].shape, rate.shape[1])
    outputs = []
    for step in range(u.shape[1]):
        decay = torch.exp(-width[:, step, :, None] * rate)
        state = decay * state + (width[:, step] * u[:, step])[..., None] * b[:, step, None]
        outputs.append((state * c[:, step, None]).sum(-1))
    y = torch.stack(outputs, 1) + skip.to(kind) * u
    return (y * torch.nn.functional.silu(z.to(kind))).to(x.dtype)


def magnitude(
    x: torch.Tensor,
    delta: torch.Tensor,
    z: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    rate: torch.Tensor,
    skip: torch.Tensor,
) -> torch.Tensor:
    """The same with absolute values; a decay is off by the size of its exponent, times what it decays.

    The gate is off by |z| as well, the exponent in it. Exponentials below the smallest normal number of
    float32 lose their digits.
    """
    smallest = torch.finfo(torch.float32).smallest_normal / torch.finfo(torch.float32).eps
    width = torch.nn.functional.softplus(delta)
    state = error = x.new_zeros(*x[:, 0].shape, rate.shape[1])
    outputs = []
    for step in range(x.shape[1]):
        exponent = width[:, step, :, None] * rate
        added = ((width[:, step] + smallest) * x[:, step].abs())[..., None] * b[:, step, None].abs()
        error = torch.exp(-exponent) * (error + (1 + exponent) * state) + smallest * state + added
        state = torch.exp(-exponent) * state + added
        outputs.append((error * c[:, step, None].abs()).sum(-1))
    gate = torch.nn.functional.silu(z).abs() * (1 + z.abs()) + smallest * z.abs()
    return (torch.stack(outputs, 1) + (skip * x).abs()) * gate
