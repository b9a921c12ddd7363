import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, group):
        super().__init__()
        self.group = group

    def forward(self, x):
        return flag_gems.per_token_group_quant_fp8(x, self.group)
