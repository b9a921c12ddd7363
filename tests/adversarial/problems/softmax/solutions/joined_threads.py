"""Two Python threads call the native function on half of the rows each, and are joined."""

from concurrent.futures import ThreadPoolExecutor

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
extern "C" void softmax(const float* x, float* out, long rows, long cols) {
    for (long r = 0; r < rows; ++r) {
        float m = -INFINITY, s = 0.0f;
        for (long c = 0; c < cols; ++c) m = std::fmax(m, x[r * cols + c]);
        for (long c = 0; c < cols; ++c) s += (out[r * cols + c] = std::exp(x[r * cols + c] - m));
        for (long c = 0; c < cols; ++c) out[r * cols + c] /= s;
    }
}
"""
library = build(SOURCE)


def rows_of(x, out, begin, end):
    library.softmax(
        ctypes.c_void_p(x[begin:].data_ptr()),
        ctypes.c_void_p(out[begin:].data_ptr()),
        ctypes.c_long(end - begin),
        ctypes.c_long(x.shape[1]),
    )


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        middle = x.shape[0] // 2
        with ThreadPoolExecutor(2) as pool:
            parts = [pool.submit(rows_of, x, out, *part) for part in ((0, middle), (middle, x.shape[0]))]
        for part in parts:
            part.result()
        return out
