"""Welford's update in C++ through ctypes."""

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
#include <cmath>
extern "C" void layer_norm(const float* x, const float* w, const float* b, float* out, long rows, long n, float eps) {
#pragma omp parallel for schedule(dynamic, 4)
    for (long r = 0; r < rows; ++r) {
        float mean = 0, m2 = 0;
        for (long i = 0; i < n; ++i) {
            const float d = x[r * n + i] - mean;
            mean += d / float(i + 1);
            m2 += d * (x[r * n + i] - mean);
        }
        const float s = 1.0f / std::sqrt(m2 / float(n) + eps);
        for (long i = 0; i < n; ++i) out[r * n + i] = (x[r * n + i] - mean) * s * w[i] + b[i];
    }
}
"""
library = build(SOURCE)


def pointer(tensor):
    return ctypes.cast(tensor.data_ptr(), ctypes.c_void_p)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        library.layer_norm(
            pointer(x),
            pointer(self.norm.weight),
            pointer(self.norm.bias),
            pointer(out),
            ctypes.c_long(x.shape[0]),
            ctypes.c_long(x.shape[1]),
            ctypes.c_float(self.norm.eps),
        )
        return out
