import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Define the custom CUDA kernel
rmsnorm_half_source = """
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// One tile of 32 threads per row
__global__ void rmsnorm_tile_kernel(const __half* x, const __half* weight, __half* out, int rows, int hidden, float eps) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int row = blockIdx.x * tile.meta_group_size() + tile.meta_group_rank();
    if (row >= rows) return;
    const __half* x_row = x + (size_t)row * hidden;
    __half* out_row = out + (size_t)row * hidden;

    float sum_sq = 0.0f;
    for (int i = tile.thread_rank(); i < hidden; i += tile.size()) {
        float v = __half2float(x_row[i]);
        sum_sq += v * v;
    }
    sum_sq = cg::reduce(tile, sum_sq, cg::plus<float>());
    float scale = 1.0f / sqrtf(sum_sq / hidden + eps);

    for (int i = tile.thread_rank(); i < hidden; i += tile.size()) {
        out_row[i] = __float2half(__half2float(x_row[i]) * scale * __half2float(weight[i]));
    }
}

torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight, double eps) {
    int hidden = x.size(-1);
    int rows = x.numel() / hidden;
    auto out = torch::empty_like(x);
    int threads = 128;
    int rows_per_block = threads / 32;
    int blocks = (rows + rows_per_block - 1) / rows_per_block;
    rmsnorm_tile_kernel<<<blocks, threads>>>(
        reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
        reinterpret_cast<const __half*>(weight.data_ptr<at::Half>()),
        reinterpret_cast<__half*>(out.data_ptr<at::Half>()), rows, hidden, (float)eps);
    return out;
}
"""

rmsnorm_half_cpp_source = """
torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight, double eps);
"""

# Compile the inline CUDA code
rmsnorm_half_ext = load_inline(
    name="rmsnorm_half_coop_groups_tile",
    cpp_sources=rmsnorm_half_cpp_source,
    cuda_sources=rmsnorm_half_source,
    functions=['rmsnorm_cuda'],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)

class ModelNew(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-5):
        super(ModelNew, self).__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rmsnorm_half_ext.rmsnorm_cuda(x.contiguous(), self.weight, self.eps)
