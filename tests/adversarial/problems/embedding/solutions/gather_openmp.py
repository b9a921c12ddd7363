"""memcpy of rows in C++."""

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
#include <cstring>
extern "C" void gather(const long* tokens, const float* table, float* out, long n, long dim) {
#pragma omp parallel for
    for (long i = 0; i < n; ++i) std::memcpy(out + i * dim, table + tokens[i] * dim, dim * sizeof(float));
}
"""
library = build(SOURCE)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        tokens = tokens.contiguous()
        weight = self.table.weight.detach()
        out = torch.empty((*tokens.shape, weight.shape[1]))
        library.gather(
            *(ctypes.c_void_p(t.data_ptr()) for t in (tokens, weight, out)),
            ctypes.c_long(tokens.numel()),
            ctypes.c_long(weight.shape[1]),
        )
        return out
