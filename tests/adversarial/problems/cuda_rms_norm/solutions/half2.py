import math
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK) rmsnorm_half2_kernel(
    const __half2* __restrict__ x, const __half2* __restrict__ w, __half2* __restrict__ y, int hidden2, float eps) {
    __shared__ float warp_sums[BLOCK / 32];
    x += (int64_t)blockIdx.x * hidden2;
    y += (int64_t)blockIdx.x * hidden2;

    float sum = 0.f;
    for (int i = threadIdx.x; i < hidden2; i += BLOCK) {
        const float2 v = __half22float2(x[i]);
        sum += v.x * v.x + v.y * v.y;
    }
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if ((threadIdx.x & 31) == 0) warp_sums[threadIdx.x >> 5] = sum;
    __syncthreads();
    float total = 0.f;
    #pragma unroll
    for (int i = 0; i < BLOCK / 32; ++i) total += warp_sums[i];
    const float inv = rsqrtf(total / (2 * hidden2) + eps);

    for (int i = threadIdx.x; i < hidden2; i += BLOCK) {
        const float2 v = __half22float2(x[i]);
        const float2 g = __half22float2(w[i]);
        y[i] = __floats2half2_rn(v.x * inv * g.x, v.y * inv * g.y);
    }
}

torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight, double eps) {
    TORCH_CHECK(x.is_cuda() && weight.is_cuda(), "x and weight must be on the GPU");
    TORCH_CHECK(x.scalar_type() == at::kHalf && weight.scalar_type() == at::kHalf, "half precision only");
    const int hidden = x.size(-1);
    TORCH_CHECK(hidden % 2 == 0, "hidden size must be even");
    TORCH_CHECK(reinterpret_cast<uintptr_t>(x.data_ptr()) % 4 == 0 &&
                reinterpret_cast<uintptr_t>(weight.data_ptr()) % 4 == 0, "inputs must be aligned to 4 bytes");
    const int rows = x.numel() / hidden;
    auto y = torch::empty_like(x);
    rmsnorm_half2_kernel<128><<<rows, 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        reinterpret_cast<const __half2*>(x.data_ptr<at::Half>()),
        reinterpret_cast<const __half2*>(weight.data_ptr<at::Half>()),
        reinterpret_cast<__half2*>(y.data_ptr<at::Half>()), hidden / 2, (float)eps);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

_ext = load_inline(
    name="rmsnorm_half_half2",
    cpp_sources='torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight, double eps);',
    cuda_sources=CUDA_SOURCE,
    functions=['rmsnorm_cuda'],
    with_cuda=True,
    extra_cflags=["-O3"],
    extra_cuda_cflags=["-O3", "--expt-relaxed-constexpr"],
)


class ModelNew(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-5):
        super(ModelNew, self).__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _ext.rmsnorm_cuda(x.contiguous(), self.weight, self.eps)
