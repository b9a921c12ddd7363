import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        return flag_gems.scaled_dot_product_attention(q, k, v, is_causal=True)
