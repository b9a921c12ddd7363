import torch
import torch.nn as nn
from fla.ops.kda.gate import fused_kda_gate


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, g, a_log, dt_bias):
        return fused_kda_gate(g, a_log, dt_bias)
