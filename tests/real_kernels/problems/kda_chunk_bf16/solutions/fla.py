import torch
import torch.nn as nn
from fla.ops import chunk_kda


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, g, beta):
        return chunk_kda(q, k, v, g, beta, output_final_state=True)
