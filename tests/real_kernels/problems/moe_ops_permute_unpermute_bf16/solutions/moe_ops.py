import torch
import torch.nn as nn
from moe_ops import permute, unpermute


class ModelNew(nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = experts

    def forward(self, x, ids, prob):
        rows, row_id, _ = permute(x, ids, E=self.experts)
        return unpermute(rows, row_id, prob, x.shape[0], ids.shape[1])
