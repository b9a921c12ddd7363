import torch
import torch.nn as nn
from liger_kernel.transformers.functional import liger_kl_div


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, logp, target):
        return liger_kl_div(logp, target, reduction="batchmean")
