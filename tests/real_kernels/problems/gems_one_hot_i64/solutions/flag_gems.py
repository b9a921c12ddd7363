import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        return flag_gems.one_hot(x, self.classes)
