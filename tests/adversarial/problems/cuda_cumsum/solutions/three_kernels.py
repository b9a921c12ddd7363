import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int CHUNK = 512;

// 1) inclusive scan within chunks; the total of every chunk goes to sums
__global__ void scan_chunks(const float* x, float* y, float* sums, int n, int chunks) {
    __shared__ float warp_sums[CHUNK / 32];
    const int row = blockIdx.y;
    const int i = blockIdx.x * CHUNK + threadIdx.x;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

    float v = i < n ? x[(size_t)row * n + i] : 0.f;
    for (int d = 1; d < 32; d <<= 1) {
        float t = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += t;
    }
    if (lane == 31) warp_sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        float s = lane < CHUNK / 32 ? warp_sums[lane] : 0.f;
        for (int d = 1; d < CHUNK / 32; d <<= 1) {
            float t = __shfl_up_sync(0xffffffff, s, d);
            if (lane >= d) s += t;
        }
        if (lane < CHUNK / 32) warp_sums[lane] = s;
    }
    __syncthreads();
    if (warp > 0) v += warp_sums[warp - 1];
    if (i < n) y[(size_t)row * n + i] = v;
    if (threadIdx.x == CHUNK - 1) sums[row * chunks + blockIdx.x] = v;
}

// 2) running totals of the chunks, one thread per row
__global__ void scan_sums(float* sums, int rows, int chunks) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float acc = 0.f;
    for (int c = 0; c < chunks; ++c) {
        acc += sums[row * chunks + c];
        sums[row * chunks + c] = acc;
    }
}

// 3) add what precedes the chunk
__global__ void add_offsets(float* y, const float* sums, int n, int chunks) {
    const int row = blockIdx.y;
    const int i = blockIdx.x * CHUNK + threadIdx.x;
    if (blockIdx.x > 0 && i < n) y[(size_t)row * n + i] += sums[row * chunks + blockIdx.x - 1];
}

torch::Tensor cumsum_cuda(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
    const int rows = x.size(0), n = x.size(1);
    const int chunks = (n + CHUNK - 1) / CHUNK;
    auto y = torch::empty_like(x);
    auto sums = torch::empty({rows, chunks}, x.options());
    dim3 grid(chunks, rows);
    scan_chunks<<<grid, CHUNK>>>(x.data_ptr<float>(), y.data_ptr<float>(), sums.data_ptr<float>(), n, chunks);
    scan_sums<<<(rows + 127) / 128, 128>>>(sums.data_ptr<float>(), rows, chunks);
    add_offsets<<<grid, CHUNK>>>(y.data_ptr<float>(), sums.data_ptr<float>(), n, chunks);
    return y;
}
"""

cpp_src = "torch::Tensor cumsum_cuda(torch::Tensor x);"

module = load_inline(
    name="cumsum_three_kernels",
    cpp_sources=[cpp_src],
    cuda_sources=[cuda_src],
    functions=['cumsum_cuda'],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super(ModelNew, self).__init__()
        self.dim = dim

    def forward(self, x):
        assert self.dim == 1 and x.dim() == 2
        return module.cumsum_cuda(x.contiguous())
