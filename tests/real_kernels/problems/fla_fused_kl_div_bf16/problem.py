"""fused_kl_div"""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 32
hidden = 64
vocab = 512

class Model(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))
        self.target_weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))

    def forward(self, x, target_x):
        s = torch.log_softmax((x @ self.weight.t()).float(), -1)
        t = torch.log_softmax((target_x @ self.target_weight.t()).float(), -1)
        return F.kl_div(s, t, log_target=True, reduction="batchmean")


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16), torch.randn(tokens, hidden, dtype=torch.bfloat16)]


def get_init_inputs():
    return [vocab, hidden]
