import torch
import torch.nn as nn

BATCH = 12
SEQ = 70


class Model(nn.Module):
    """Softmax over the first lens[b] entries of each row, zero elsewhere."""

    def forward(self, x, lens):
        mask = torch.arange(x.shape[1], device=x.device)[None, :] < lens[:, None]
        return torch.softmax(x.masked_fill(~mask, float("-inf")), dim=1)


def get_inputs():
    return [torch.randn(BATCH, SEQ), torch.randint(1, SEQ + 1, (BATCH,))]


def get_init_inputs():
    return []
