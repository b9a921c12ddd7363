"""What the gated delta rule is compared with: its chunks in PyTorch."""

import torch

CHUNK = 64


def in_chunks(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rate: torch.Tensor, write: torch.Tensor
) -> torch.Tensor:
    """As the reference: triangular systems of all chunks at once, then a loop over the chunks."""
    steps = q.shape[2]
    padding = -steps % CHUNK
    q, k, v = (torch.nn.functional.pad(each, (0, 0, 0, padding)) for each in (q, k, v))
    rate, write = (torch.nn.functional.pad(each, (0, padding)) for each in (rate, write))
    q, k, v, rate, write = (
        each.unflatten(2, (-1, CHUNK)).to(torch.promote_types(each.dtype, torch.float32))
        for each in (q, k, v, rate, write)
    )
    # Differences of sums over a chunk: a step that forgets nearly everything costs the others digits.
    total = rate.cumsum(-1)
    decay = torch.exp(total[..., None, :] - total[..., :, None]).tril()
    since, share = torch.exp(-total)[..., None], torch.sigmoid(write)[..., None]
    system = (share * decay * (k @ k.mT)).tril(-1) + torch.eye(CHUNK, device=q.device)
    right = torch.cat((share * v, share * since * k), -1)
    values, keys = torch.linalg.solve_triangular(system, right, upper=False).split(
        (v.shape[-1], k.shape[-1]), -1
    )
    scores, queries, last = (q @ k.mT) * decay, q * since, k * decay[..., -1, :, None]
    state = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=k.dtype, device=q.device)
    outputs = []
    for chunk in range(q.shape[2]):
        update = values[:, :, chunk] - keys[:, :, chunk] @ state
        outputs.append(queries[:, :, chunk] @ state + scores[:, :, chunk] @ update)
        state = since[:, :, chunk, -1:] * state + last[:, :, chunk].mT @ update
    return torch.cat(outputs, 2)[:, :, :steps].to(v.dtype)
