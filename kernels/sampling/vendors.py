"""What sampling is compared with: PyTorch's selection of as many logits as any row keeps, and sums over
these."""

import torch


def selection(
    logits: torch.Tensor, k: torch.Tensor, draw: torch.Tensor, temperature: float, p: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """As the reference, but of equal tokens exactly k stay, and the draw is looked up in descending order."""
    values, tokens = logits.topk(int(k.max()))
    place = torch.arange(values.shape[-1], device=logits.device)
    weights = ((values.float() - values[:, :1].float()) / temperature).exp()
    sums = weights.masked_fill(place >= k[:, None], 0.0).cumsum(-1)
    stays = 1 + (sums[:, :-1] < p * sums[:, -1:]).sum(-1, keepdim=True)
    total = sums.gather(-1, stays - 1)
    chosen = torch.searchsorted(sums, (draw[:, None] + 0.5) * 2.0**-23 * total)
    return tokens.gather(-1, chosen)[:, 0].int(), (weights.gather(-1, chosen) / total)[:, 0]
