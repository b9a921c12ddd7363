import torch
import torch.nn as nn
from mlstm_kernels.torch.chunkwise.triton_xl_chunk import mlstm_chunkwise__xl_chunk


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, i, f):
        return mlstm_chunkwise__xl_chunk(q, k, v, i, f, autocast_kernel_dtype=torch.float32)
