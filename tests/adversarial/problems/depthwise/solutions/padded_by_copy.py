import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def dw(x, w, b, out, C, LEN, LP, K: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = r % C
    t = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(b + c)
    for k in range(K):
        acc += tl.load(x + r * LP + t + k, mask=t < LEN, other=0.0) * tl.load(w + c * K + k)
    tl.store(out + r * LEN + t, acc, mask=t < LEN)

class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size, padding=kernel_size // 2, groups=channels)
        self.k = kernel_size

    def forward(self, x):
        N, C, LEN = x.shape
        xp = torch.zeros(N, C, LEN + self.k - 1, device=x.device)
        xp[:, :, self.k // 2 : self.k // 2 + LEN] = x
        out = torch.empty(N, C, LEN, device=x.device)
        dw[(N * C,)](xp, self.conv.weight, self.conv.bias, out, C, LEN, xp.shape[2], self.k, BLOCK=triton.next_power_of_2(LEN))
        return out
