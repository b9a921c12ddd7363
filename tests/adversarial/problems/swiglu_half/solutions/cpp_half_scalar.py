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
#include <cmath>
struct Args { const _Float16* g; const _Float16* u; _Float16* out; long M, K, N; };
extern "C" void run(const _Float16* x, const Args* a) {
    for (long m = 0; m < a->M; ++m) for (long n = 0; n < a->N; ++n) {
        double g = 0, u = 0;
        for (long k = 0; k < a->K; ++k) { g += double(x[m*a->K+k]) * double(a->g[n*a->K+k]); u += double(x[m*a->K+k]) * double(a->u[n*a->K+k]); }
        a->out[m*a->N+n] = (_Float16)(float)(g / (1 + std::exp(-g)) * u);
    }
}
""")
class Args(ctypes.Structure):
    _fields_ = [("g", ctypes.c_void_p), ("u", ctypes.c_void_p), ("out", ctypes.c_void_p), ("M", L), ("K", L), ("N", L)]

class ModelNew(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False, dtype=torch.float16)
        self.up = nn.Linear(dim, hidden, bias=False, dtype=torch.float16)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], self.gate.out_features, dtype=torch.float16)
        a = Args(self.gate.weight.data_ptr(), self.up.weight.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1], out.shape[1])
        lib.run(P(x), ctypes.byref(a))
        return out
