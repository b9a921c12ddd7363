"""A token from the logits of a language model, of the k largest ones and of those the fewest that reach p."""

import torch


def reference(
    logits: torch.Tensor, k: torch.Tensor, draw: torch.Tensor, temperature: float, p: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits[rows, classes], k, draw [rows] -> token[rows], probability[rows] of it among those that stay.

    A token stays if it is as large as the k-th largest, and if those of them that are larger have less than p
    of the probability; so equal tokens go or stay together. Of the sums of what stays, in the order of the
    vocabulary, the token is the first that reaches the draw, which is one of 2^23 equally likely ones.
    """
    x = logits if logits.dtype == torch.float64 else logits.float()
    ordered = x.gather(-1, x.argsort(-1, descending=True))
    largest = ordered[:, :1]
    ordered = ordered.masked_fill(ordered < ordered.gather(-1, k.long()[:, None] - 1), -torch.inf)
    sums = ((ordered - largest) / temperature).exp().cumsum(-1)
    count = 1 + (sums[:, :-1] < p * sums[:, -1:]).sum(-1, keepdim=True)
    stays = x >= ordered.gather(-1, count - 1)
    weights = ((x - largest) / temperature).exp().masked_fill(~stays, 0.0)
    sums = weights.cumsum(-1)
    token = torch.searchsorted(sums, (draw[:, None] + 0.5) * 2.0**-23 * sums[:, -1:])
    probability = weights.gather(-1, token) / sums[:, -1:]
    return token[:, 0].to(torch.int32), probability[:, 0].float()
