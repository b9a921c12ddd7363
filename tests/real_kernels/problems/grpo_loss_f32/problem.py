"""grpo_loss"""

import torch
import torch.nn as nn

batch = 2
length = 16
vocab = 512

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, logits, old_logp, ref_logp, ids, advantages, mask):
        logp = torch.log_softmax(logits[:, :-1] / 0.9, dim=-1).gather(-1, ids[..., None]).squeeze(-1)
        ratio = torch.exp(logp - old_logp)
        adv = advantages[:, None]
        loss = -torch.minimum(ratio * adv, ratio.clamp(1 - 0.2, 1 + 0.4) * adv)
        kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
        loss = loss + 0.04 * kl
        return ((loss * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()


def get_inputs():
    logits = torch.randn(batch, length + 1, vocab)
    ids = torch.randint(0, vocab, (batch, length))
    logp = torch.log_softmax(logits[:, :-1] / 0.9, dim=-1).gather(-1, ids[..., None]).squeeze(-1)
    old, ref = logp + 0.3 * torch.randn(batch, length), logp + 0.3 * torch.randn(batch, length)
    keep = torch.randint(length // 2, length + 1, (batch, 1))
    mask = (torch.arange(length)[None] < keep).to(torch.int64)
    return [logits, old, ref, ids, torch.randn(batch), mask]


def get_init_inputs():
    return []
