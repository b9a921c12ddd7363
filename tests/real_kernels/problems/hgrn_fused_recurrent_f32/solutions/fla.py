import torch
import torch.nn as nn
from fla.ops import fused_recurrent_hgrn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, g):
        return fused_recurrent_hgrn(x, g, output_final_state=True)
