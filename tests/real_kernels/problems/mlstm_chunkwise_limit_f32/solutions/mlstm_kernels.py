import torch
import torch.nn as nn
from mlstm_kernels.torch.chunkwise.triton_limit_chunk import mlstm_chunkwise__limit_chunk


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, i, f):
        return mlstm_chunkwise__limit_chunk(q, k, v, i, f, autocast_kernel_dtype=torch.float32)
