import torch
import torch.nn as nn
from torchao.prototype.mx_formats.kernels import triton_to_mxfp8_dim0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        q, s = triton_to_mxfp8_dim0(x, 32, "rceil")
        return q, s.view(torch.uint8)
