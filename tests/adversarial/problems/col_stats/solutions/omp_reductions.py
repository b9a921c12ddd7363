import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <vector>

std::vector<torch::Tensor> col_stats_red(torch::Tensor x_in) {
  auto x = x_in.contiguous();
  const int64_t rows = x.size(0), cols = x.size(1);
  auto col = torch::zeros({cols}, x.options());
  auto tot = torch::empty({}, x.options());
  const float* p = x.data_ptr<float>();
  float* c = col.data_ptr<float>();
  float total = 0.0f;
  #pragma omp parallel for reduction(+ : total) reduction(+ : c[ : cols])
  for (int64_t i = 0; i < rows; ++i) {
    float s = 0.0f;
    for (int64_t j = 0; j < cols; ++j) {
      const float v = p[i * cols + j];
      c[j] += v;
      s += v * v;
    }
    total += s;
  }
  tot.data_ptr<float>()[0] = total;
  return {col, tot};
}
"""
ext = load_inline(name="col_stats_omp_reductions", cpp_sources=src, functions=["col_stats_red"],
                  extra_cflags=["-O2", "-fopenmp"], extra_ldflags=["-fopenmp"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.col_stats_red(x)
