import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>
#include <algorithm>

torch::Tensor softmax_own(torch::Tensor x_in) {
  auto x = x_in.contiguous();
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* p = x.data_ptr<float>();
  float* o = out.data_ptr<float>();
  #pragma omp parallel for
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<float> e(cols);
    float m = p[i * cols];
    for (int64_t j = 1; j < cols; ++j) m = std::max(m, p[i * cols + j]);
    float s = 0.0f;
    for (int64_t j = 0; j < cols; ++j) { e[j] = std::exp(p[i * cols + j] - m); s += e[j]; }
    const float inv = 1.0f / s;
    for (int64_t j = 0; j < cols; ++j) o[i * cols + j] = e[j] * inv;
  }
  return out;
}
"""
ext = load_inline(name="softmax_rows_host_omp_scratch_per_row", cpp_sources=src, functions=["softmax_own"],
                  extra_cflags=["-O2", "-fopenmp"], extra_ldflags=["-fopenmp"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax_own(x)
