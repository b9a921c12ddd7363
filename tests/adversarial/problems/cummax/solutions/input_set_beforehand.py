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

lib = build(r"""
static long R, N; static const float* in;
extern "C" void set_input(const float* x, long r, long n) { in = x; R = r; N = n; }
extern "C" void run(float* v, long* w) {
    for (long r = 0; r < R; ++r) { long b = r * N; for (long i = r * N; i < r * N + N; ++i) { if (in[i] >= in[b]) b = i; v[i] = in[b]; w[i] = b - r * N; } }
}
""")

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        values = torch.empty_like(x)
        where = torch.empty(x.shape, dtype=torch.int64)
        lib.set_input(P(x), L(x.shape[0]), L(x.shape[1]))
        lib.run(P(values), P(where))
        return values, where
