"""CUDA C++: the third power as two products."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void tanh_gelu(const float* x, float* y, long n) {
    const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = x[i];
    const float cube = v * v * v;
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * cube)));
}

torch::Tensor run(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const long n = x.numel();
    if (n != 0) tanh_gelu<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
module = load_inline(
    name="tanh_gelu_products",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
