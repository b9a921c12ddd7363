import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def scatter(x, w, out, CIN, COUT, LEN, LOUT, K: tl.constexpr, S: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    ci = tl.program_id(1)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + (n * CIN + ci) * LEN + i, mask=i < LEN, other=0.0)
    for co in range(COUT):
        for k in range(K):
            t = i * S + k - PAD
            tl.atomic_add(out + (n * COUT + co) * LOUT + t, v * tl.load(w + (ci * COUT + co) * K + k), mask=(i < LEN) & (t >= 0) & (t < LOUT))

class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.k, self.s, self.p = kernel_size, stride, padding

    def forward(self, x):
        x = x.contiguous()
        N, CIN, LEN = x.shape
        COUT = self.conv.out_channels
        LOUT = (LEN - 1) * self.s - 2 * self.p + self.k
        out = self.conv.bias.detach().view(1, -1, 1).expand(N, COUT, LOUT).contiguous()
        if out.data_ptr() == self.conv.bias.data_ptr():
            out = out.clone()
        scatter[(N, CIN)](x, self.conv.weight, out, CIN, COUT, LEN, LOUT, self.k, self.s, self.p, BLOCK=triton.next_power_of_2(LEN))
        return out
