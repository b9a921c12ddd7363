import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_fp16.h>

template <typename scalar_t>
__global__ void rmsnorm_kernel(
    const scalar_t* __restrict__ x,
    const scalar_t* __restrict__ weight,
    scalar_t* __restrict__ out,
    int hidden, float eps) {
    __shared__ float shared[32];
    const scalar_t* x_row = x + (int64_t)blockIdx.x * hidden;
    scalar_t* out_row = out + (int64_t)blockIdx.x * hidden;

    // accumulate in float
    float sum = 0.0f;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        float v = static_cast<float>(x_row[i]);
        sum += v * v;
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int w = 0; w < blockDim.x / 32; w++) total += shared[w];
        shared[0] = rsqrtf(total / hidden + eps);
    }
    __syncthreads();
    const float inv_rms = shared[0];

    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        out_row[i] = static_cast<scalar_t>(static_cast<float>(x_row[i]) * inv_rms * static_cast<float>(weight[i]));
    }
}

torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight, double eps) {
    TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
    TORCH_CHECK(x.scalar_type() == weight.scalar_type(), "x and weight must have the same dtype");
    const int hidden = x.size(-1);
    const int rows = x.numel() / hidden;
    auto out = torch::empty_like(x);
    const int threads = 256;
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "rmsnorm_cuda", ([&] {
        rmsnorm_kernel<scalar_t><<<rows, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<scalar_t>(), weight.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), hidden, static_cast<float>(eps));
    }));
    return out;
}
"""

cpp_src = "torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight, double eps);"

module = load_inline(
    name="rmsnorm_half_dispatch_half",
    cpp_sources=[cpp_src],
    cuda_sources=[cuda_src],
    functions=['rmsnorm_cuda'],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-5):
        super(ModelNew, self).__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.rmsnorm_cuda(x.contiguous(), self.weight, self.eps)
