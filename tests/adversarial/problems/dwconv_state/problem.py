import torch
import torch.nn as nn
import torch.nn.functional as F
B, C, T = 2, 6, 30
KW = 4
DIL = 2

class Model(nn.Module):
    """Causal depthwise convolution, dilated, silu; returns a channels-last view and the new state."""
    def __init__(self, c, k, dil):
        super().__init__()
        self.conv = nn.Conv1d(c, c, k, groups=c, dilation=dil)
        self.pad = (k - 1) * dil
    def forward(self, x, state=None):
        if state is None:
            state = x.new_zeros(x.shape[0], x.shape[1], self.pad)
        z = torch.cat([state, x], -1)
        return {"y": F.silu(self.conv(z)).transpose(1, 2), "state": z[..., z.shape[-1] - self.pad:]}

def get_inputs():
    return [torch.randn(B, C, T), torch.randn(B, C, (KW - 1) * DIL)]

def get_input_groups():
    return [[torch.randn(2, 6, 3)], [torch.randn(1, 6, 11), None], [torch.randn(2, 17, 6).transpose(1, 2), torch.randn(2, 6, 6)]]

def get_init_inputs():
    return [C, KW, DIL]
