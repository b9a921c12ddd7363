import torch
import torch.nn as nn
from liger_kernel.transformers.functional import liger_cross_entropy


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    # The package writes gradients into the memory of the logits.
    def forward(self, logits, target):
        return liger_cross_entropy(logits.clone(), target, ignore_index=-100, label_smoothing=0.1)
