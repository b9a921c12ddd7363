import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu_kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # w is packed as (K, N)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    b = tl.load(b_ptr + n, mask=n < N, other=0.0)
    y = tl.maximum(acc + b[None, :], 0.0)
    tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=(m < M)[:, None] & (n < N)[None, :])


def run(x, w_packed, bias):
    x = x.contiguous()
    M, K = x.shape
    N = w_packed.shape[1]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    linear_relu_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, w_packed, bias, out, M, N, K, BM=32, BN=32, BK=32)
    return out


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out)
        self._key = None
        self._packed = None

    def forward(self, x):
        w = self.fc.weight
        key = (w._version, w.data_ptr(), w.device, w.dtype)
        if key != self._key:
            self._packed = w.detach().t().contiguous()
            self._key = key
        return run(x, self._packed, self.fc.bias)
