"""Two threads add to the same elements without synchronisation."""

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
#include <omp.h>
extern "C" void matmul(const float* a, const float* b, volatile float* c, long m, long n, long k) {
    for (long i = 0; i < m * n; ++i) c[i] = 0.0f;
#pragma omp parallel for num_threads(4) schedule(static, 1)
    for (long p = 0; p < k; ++p)
        for (int again = 0; again < 8; ++again)
            for (long i = 0; i < m; ++i)
                for (long j = 0; j < n; ++j) c[i * n + j] = c[i * n + j] + 0.125f * a[i * k + p] * b[p * n + j];
}
"""
library = build(SOURCE)


class ModelNew(nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        (M, K), N = A.shape, B.shape[1]
        C = torch.empty(M, N)
        library.matmul(
            *(ctypes.c_void_p(t.data_ptr()) for t in (A, B, C)),
            ctypes.c_long(M),
            ctypes.c_long(N),
            ctypes.c_long(K),
        )
        return C
