import torch
import torch.nn as nn
from flash_attention_triton import flash_attention_v2


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        return flash_attention_v2(q, k, v)
