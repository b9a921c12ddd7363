import torch
import torch.nn as nn
from fla.ops import fused_recurrent_kda


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, g, beta):
        return fused_recurrent_kda(q, k, v, g, beta, output_final_state=True)
