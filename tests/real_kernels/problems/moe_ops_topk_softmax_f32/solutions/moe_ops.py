import torch
import torch.nn as nn
from moe_ops import fused_topk_softmax


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, logits):
        w, i = fused_topk_softmax(logits, self.k)
        return w, i.to(torch.int32)
