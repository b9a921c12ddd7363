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
#include <cstring>
#include <cstdint>
static float up(uint16_t h) { uint32_t b = uint32_t(h) << 16; float f; std::memcpy(&f, &b, 4); return f; }
static uint16_t down(float f) { uint32_t b; std::memcpy(&b, &f, 4); if (f != f) return 0x7fc0; return uint16_t((b + 0x7fff + ((b >> 16) & 1)) >> 16); }
extern "C" void sd(const uint16_t* x, uint16_t* out, long R, long T) {
    for (long r = 0; r < R; ++r) {
        double m = 0, q = 0;
        for (long t = 0; t < T; ++t) { double d = up(x[r*T+t]) - m; m += d / (t + 1); q += d * (up(x[r*T+t]) - m); }
        out[r] = down((float)std::sqrt(q / (T - 1)));
    }
}
""")

class ModelNew(nn.Module):
    def forward(self, x):
        N, T, C = x.shape
        xt = x.transpose(1, 2).contiguous()
        out = torch.empty(N, C, dtype=torch.bfloat16)
        lib.sd(P(xt), P(out), L(N * C), L(T))
        return out
