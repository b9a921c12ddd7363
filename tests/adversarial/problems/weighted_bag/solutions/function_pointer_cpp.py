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
extern "C" void bag(const long* idx, const float* w, const float* t, float* out, long R, long B, long D) {
    for (long r = 0; r < R; ++r) for (long d = 0; d < D; ++d) {
        double s = 0;
        for (long j = B; j-- > 0;) s += double(w[r*B+j]) * t[idx[r*B+j]*D+d];
        out[r*D+d] = (float)s;
    }
}
""")
run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, L, L, L)(ctypes.cast(lib.bag, ctypes.c_void_p).value)

class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, indices, weights):
        indices, weights = indices.contiguous(), weights.contiguous()
        R, BAG = indices.shape
        D = self.table.weight.shape[1]
        out = torch.empty(R, D, device=weights.device)
        run(indices.data_ptr(), weights.data_ptr(), self.table.weight.data_ptr(), out.data_ptr(), R, BAG, D)
        return out
