import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <vector>

torch::Tensor hist_atomic(torch::Tensor idx_in, int64_t bins) {
  auto idx = idx_in.contiguous();
  auto hist = torch::zeros({bins}, torch::dtype(torch::kInt32));
  const int* p = idx.data_ptr<int>();
  int* h = hist.data_ptr<int>();
  const int64_t n = idx.numel();
  #pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) {
    #pragma omp atomic
    h[p[i]]++;
  }
  return hist;
}
"""
ext = load_inline(name="histogram_counts_omp_atomic", cpp_sources=src, functions=["hist_atomic"],
                  extra_cflags=["-O2", "-fopenmp"], extra_ldflags=["-fopenmp"])


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, idx):
        return ext.hist_atomic(idx, self.bins)
