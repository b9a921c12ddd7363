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
#include <cstdlib>
extern "C" float* ct(const float* x, const float* w, const float* b, long N, long CI, long CO, long Ln, long LO, long K, long S, long PD) {
    float* y = (float*)std::malloc(sizeof(float) * (N * CO * LO + 1));
    for (long n = 0; n < N; ++n) for (long c = 0; c < CO; ++c) {
        float* o = y + (n * CO + c) * LO;
        for (long t = 0; t < LO; ++t) o[t] = b[c];
        for (long ci = 0; ci < CI; ++ci) for (long i = 0; i < Ln; ++i) for (long k = 0; k < K; ++k) {
            long t = i * S + k - PD;
            if (t >= 0 && t < LO) o[t] += x[(n * CI + ci) * Ln + i] * w[(ci * CO + c) * K + k];
        }
    }
    return y;
}
extern "C" void release(float* p) { std::free(p); }
""")
lib.ct.restype = ctypes.c_void_p
lib.release.argtypes = [ctypes.c_void_p]

class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.ConvTranspose1d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.k, self.s, self.p = kernel_size, stride, padding

    def forward(self, x):
        x = x.contiguous()
        N, CIN, LEN = x.shape
        COUT = self.conv.out_channels
        LOUT = (LEN - 1) * self.s - 2 * self.p + self.k
        at = lib.ct(P(x), P(self.conv.weight), P(self.conv.bias), L(N), L(CIN), L(COUT), L(LEN), L(LOUT), L(self.k), L(self.s), L(self.p))
        out = torch.frombuffer((ctypes.c_float * (N * COUT * LOUT)).from_address(at), dtype=torch.float32).clone().view(N, COUT, LOUT)
        lib.release(at)
        return out
