import torch
import torch.nn as nn
from conch.ops.vision.nms import nms


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, b, scores):
        return nms(b, scores, 0.5)
