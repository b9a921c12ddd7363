"""What attention is compared with: its scores in memory, as before FlashAttention; a window in pieces;
sequences of any lengths one by one, and padded."""

import itertools

import torch

from kernels.attention.reference import reference, visible


def unfused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, mask: str) -> torch.Tensor:
    """As the reference; two products and a softmax, each with all scores [batch, groups, queries, keys]."""
    scores = q @ k.unsqueeze(1).mT * q.shape[-1] ** -0.5
    seen = visible(*scores.shape[-2:], mask, q.device)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v.unsqueeze(1)


def unfused_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, *, mask: str
) -> tuple[torch.Tensor, ...]:
    """Gradients of `unfused` by autograd, which keeps the weights of the forward pass."""
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(unfused(*leaves, mask=mask), leaves, dout)


def in_pieces(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, mask: str) -> torch.Tensor:
    """As the reference of a window, in pieces of as many queries as it has keys."""
    queries = q.shape[2]
    window = k.shape[1] - queries + 1
    outputs = []
    for first in range(0, queries, window):
        last = min(first + window, queries)
        keys = slice(first, last + window - 1)
        outputs.append(reference(q[:, :, first:last], k[:, keys], v[:, keys], mask=mask))
    return torch.cat(outputs, 2)


def varlen_in_turn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """As `reference_varlen`, one sequence after the other."""
    spans = itertools.pairwise([0, *ends.tolist()])
    return torch.cat(
        [_causal(*(each[None, begin:end] for each in (q, k, v)))[0] for begin, end in spans if begin < end]
    )


def varlen_padded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """As `reference_varlen`: all sequences at once, padded at their ends, which no token sees."""
    begins = torch.cat((ends.new_zeros(1), ends[:-1]))
    lengths = ends - begins
    token = torch.arange(int(lengths.max()), device=q.device)
    inside = token < lengths[:, None]
    place = torch.where(inside, begins[:, None] + token, 0)
    return _causal(q[place], k[place], v[place])[inside]


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q[batch, tokens, heads, groups, depth], k, v [batch, tokens, heads, depth] -> o as q."""
    rows, keys, values = (each.transpose(1, 2) for each in (q.flatten(2, 3), k, v))
    found = torch.nn.functional.scaled_dot_product_attention(
        rows, keys, values, is_causal=True, enable_gqa=True
    )
    return found.transpose(1, 2).unflatten(2, q.shape[2:4])


def without_blocks(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _skipped: torch.Tensor, **_: object
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Called as the reference of blocks -> the arguments of `all_blocks`. Not part of a call."""
    return q, k, v


def all_blocks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention that leaves nothing out: more than what is compared with it computes."""
    return reference(q, k, v, mask="causal")


def of_tokens(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    _blocks: torch.Tensor,
    _count: torch.Tensor,
    **_: object,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Called as the reference of selected blocks -> the arguments of `dense`. Not part of a call."""
    return q, k[:, : q.shape[1]].contiguous(), v[:, : q.shape[1]].contiguous()


def dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of all tokens to all tokens: more than what is compared with it computes."""
    return torch.nn.functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]


def of_tokens_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    blocks: torch.Tensor,
    count: torch.Tensor,
    dout: torch.Tensor,
    **_: object,
) -> tuple[torch.Tensor, ...]:
    """Called as the gradients of selected blocks -> the arguments of `dense_backward`. Not part of a call."""
    return *of_tokens(q, k, v, blocks, count), dout


def dense_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Gradients of `dense` by autograd."""
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(dense(*leaves), leaves, dout)
