import ctypes, os, subprocess, tempfile
import torch
import torch.nn as nn

def build(source):
    folder = tempfile.mkdtemp()
    code, library = os.path.join(folder, "k.cpp"), os.path.join(folder, "k.so")
    with open(code, "w") as file:
        file.write(source)
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", library, code], check=True)
    return ctypes.CDLL(library)

def P(t):
    return ctypes.c_void_p(t.data_ptr())

L = ctypes.c_long

import numpy as np
lib = build(r"""
extern "C" void am(const float* x, long* out, long rows, long n) {
    for (long r = 0; r < rows; ++r) { long b = 0; for (long i = 1; i < n; ++i) if (x[r*n+i] > x[r*n+b]) b = i; out[r] = b; }
}
""")

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = np.empty(x.shape[0], dtype=np.int64)
        lib.am(P(x), out.ctypes.data_as(ctypes.c_void_p), L(x.shape[0]), L(x.shape[1]))
        return torch.from_numpy(out)
