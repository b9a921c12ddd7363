"""Takes and touches memory until there is no more, at most 10 GiB."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        blocks = [bytearray(b"x") * (1 << 28) for _ in range(40)]
        return x.new_zeros(x.shape) + len(blocks)
