"""C++ that adds the products in an order that changes from call to call."""

import random

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
extern "C" void matmul(const float* a, const float* b, float* c, const int* order, long m, long n, long k) {
#pragma omp parallel for
    for (long i = 0; i < m; ++i) {
        for (long j = 0; j < n; ++j) c[i * n + j] = 0.0f;
        for (long l = 0; l < k; ++l) {
            const long p = order[l];
            for (long j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
        }
    }
}
"""
library = build(SOURCE)
generator = random.Random()


class ModelNew(nn.Module):
    def forward(self, A, B):
        A, B = A.contiguous(), B.contiguous()
        (M, K), N = A.shape, B.shape[1]
        C = torch.empty(M, N)
        order = list(range(K))
        generator.shuffle(order)
        library.matmul(
            ctypes.c_void_p(A.data_ptr()),
            ctypes.c_void_p(B.data_ptr()),
            ctypes.c_void_p(C.data_ptr()),
            (ctypes.c_int * K)(*order),
            ctypes.c_long(M),
            ctypes.c_long(N),
            ctypes.c_long(K),
        )
        return C
