import math
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>

template <int BLOCK, int ITEMS>
__global__ __launch_bounds__(BLOCK) void cumsum_cub_kernel(const float* __restrict__ in, float* __restrict__ out, int n) {
    using BlockScan = cub::BlockScan<float, BLOCK>;
    __shared__ typename BlockScan::TempStorage storage;
    in += static_cast<int64_t>(blockIdx.x) * n;
    out += static_cast<int64_t>(blockIdx.x) * n;
    float prefix = 0.f;
    for (int base = 0; base < n; base += BLOCK * ITEMS) {
        float items[ITEMS];
        const int first = base + threadIdx.x * ITEMS;
        #pragma unroll
        for (int j = 0; j < ITEMS; ++j) items[j] = first + j < n ? in[first + j] : 0.f;
        float total;
        BlockScan(storage).InclusiveSum(items, items, total);
        #pragma unroll
        for (int j = 0; j < ITEMS; ++j)
            if (first + j < n) out[first + j] = items[j] + prefix;
        prefix += total;
        __syncthreads();  // storage is reused
    }
}

torch::Tensor cumsum_cuda(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.dim() == 2, "expected a contiguous 2D CUDA tensor");
    auto out = torch::empty_like(x);
    cumsum_cub_kernel<128, 4><<<x.size(0), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
"""

_ext = load_inline(
    name="cumsum_cub_block_scan",
    cpp_sources='torch::Tensor cumsum_cuda(torch::Tensor x);',
    cuda_sources=CUDA_SOURCE,
    functions=['cumsum_cuda'],
    with_cuda=True,
    extra_cflags=["-O3"],
    extra_cuda_cflags=["-O3", "--expt-relaxed-constexpr"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x):
        assert self.dim == 1 and x.dim() == 2
        return _ext.cumsum_cuda(x.contiguous())
