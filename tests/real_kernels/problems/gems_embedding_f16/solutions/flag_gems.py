import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, hidden_size).to(torch.float16))

    def forward(self, ids):
        return flag_gems.embedding(self.weight, ids)
