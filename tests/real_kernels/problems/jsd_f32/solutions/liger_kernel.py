import torch
import torch.nn as nn
from liger_kernel.transformers.functional import liger_jsd


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, log_q, log_p):
        return liger_jsd(log_q, log_p, beta=0.5)
