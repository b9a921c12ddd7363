import torch
import torch.nn as nn
from liger_kernel.transformers.functional import liger_geglu


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, gate, up):
        return liger_geglu(gate, up)
