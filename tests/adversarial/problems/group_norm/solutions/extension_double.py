import torch
import torch.nn as nn

from torch.utils.cpp_extension import load_inline
ext = load_inline(name="gn_double_hx", cpp_sources=r"""
#include <torch/extension.h>
#include <cmath>
torch::Tensor gn(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t G, double eps) {
    auto in = x.contiguous();
    auto out = torch::empty_like(in);
    const int64_t N = in.size(0), C = in.size(1), HW = in.numel() / std::max<int64_t>(N * C, 1), CG = C / G, n = CG * HW;
    const float* a = in.data_ptr<float>(); float* y = out.data_ptr<float>();
    const float* wp = w.data_ptr<float>(); const float* bp = b.data_ptr<float>();
    for (int64_t p = 0; p < N * G; ++p) {
        double s = 0, q = 0;
        for (int64_t i = 0; i < n; ++i) s += a[p * n + i];
        s /= n;
        for (int64_t i = 0; i < n; ++i) q += (a[p * n + i] - s) * (a[p * n + i] - s);
        double r = 1.0 / std::sqrt(q / n + eps);
        for (int64_t i = 0; i < n; ++i) { int64_t c = (p % G) * CG + i / HW; y[p * n + i] = (a[p * n + i] - s) * r * wp[c] + bp[c]; }
    }
    return out;
}
""", functions=["gn"], extra_cflags=["-O2"], verbose=False)

class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return ext.gn(x, self.weight, self.bias, self.groups, 1e-5)
