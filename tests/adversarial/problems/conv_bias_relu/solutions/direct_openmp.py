"""A direct convolution with everything fused in C++."""

import ctypes
import os
import subprocess
import tempfile

import torch
import torch.nn as nn


def build(source):
    """Compile a plain C function library with g++ and load it."""
    folder = tempfile.mkdtemp()
    code, library = os.path.join(folder, "kernel.cpp"), os.path.join(folder, "kernel.so")
    with open(code, "w") as file:
        file.write(source)
    subprocess.run(["g++", "-O2", "-fopenmp", "-shared", "-fPIC", "-o", library, code], check=True)
    return ctypes.CDLL(library)


SOURCE = r"""
extern "C" void conv(const float* x, const float* w, const float* b, const float* extra, float* out,
                     long batch, long ci, long co, long h, long v, long k) {
    const long oh = h - k + 1, ov = v - k + 1;
#pragma omp parallel for collapse(2)
    for (long n = 0; n < batch; ++n)
        for (long o = 0; o < co; ++o)
            for (long i = 0; i < oh; ++i)
                for (long j = 0; j < ov; ++j) {
                    float s = b[o];
                    for (long c = 0; c < ci; ++c)
                        for (long p = 0; p < k; ++p)
                            for (long q = 0; q < k; ++q)
                                s += x[((n * ci + c) * h + i + p) * v + j + q] * w[((o * ci + c) * k + p) * k + q];
                    out[((n * co + o) * oh + i) * ov + j] = (s > 0 ? s : 0) + extra[o];
                }
}
"""
library = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    @torch.no_grad()
    def forward(self, x):
        x = x.contiguous()
        w = self.conv.weight.contiguous()
        (n, ci, h, v), (co, _, k, _) = x.shape, w.shape
        if h < k or v < k:
            raise ValueError(f"image of {h} x {v} is smaller than the window of {k} x {k}")
        out = torch.empty(n, co, h - k + 1, v - k + 1)
        library.conv(
            *(ctypes.c_void_p(t.data_ptr()) for t in (x, w, self.conv.bias, self.bias, out)),
            *(ctypes.c_long(v) for v in (n, ci, co, h, v, k)),
        )
        return out
