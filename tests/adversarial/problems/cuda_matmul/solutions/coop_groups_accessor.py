import math
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <c10/cuda/CUDAStream.h>

namespace cg = cooperative_groups;

template <int BLOCK>
__global__ void matmul_cg_kernel(
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> a,
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> b,
    torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> c) {
    cg::thread_block block = cg::this_thread_block();
    __shared__ float sa[BLOCK][BLOCK];
    __shared__ float sb[BLOCK][BLOCK + 1];
    const int m = a.size(0), k = a.size(1), n = b.size(1);
    const int row = blockIdx.y * BLOCK + threadIdx.y;
    const int col = blockIdx.x * BLOCK + threadIdx.x;
    float acc = 0.f;
    for (int base = 0; base < k; base += BLOCK) {
        const int ka = base + threadIdx.x;
        const int kb = base + threadIdx.y;
        sa[threadIdx.y][threadIdx.x] = (row < m && ka < k) ? a[row][ka] : 0.f;
        sb[threadIdx.y][threadIdx.x] = (kb < k && col < n) ? b[kb][col] : 0.f;
        block.sync();
        #pragma unroll
        for (int i = 0; i < BLOCK; i++) acc += sa[threadIdx.y][i] * sb[i][threadIdx.x];
        block.sync();
    }
    if (row < m && col < n) c[row][col] = acc;
}

torch::Tensor matmul_cuda(torch::Tensor A, torch::Tensor B) {
    TORCH_CHECK(A.is_cuda() && B.is_cuda(), "inputs must be CUDA tensors");
    TORCH_CHECK(A.dtype() == torch::kFloat32 && B.dtype() == torch::kFloat32);
    auto C = torch::empty({A.size(0), B.size(1)}, A.options());
    constexpr int BLOCK = 16;
    const dim3 threads(BLOCK, BLOCK);
    const dim3 blocks((B.size(1) + BLOCK - 1) / BLOCK, (A.size(0) + BLOCK - 1) / BLOCK);
    auto stream = c10::cuda::getCurrentCUDAStream().stream();
    // accessors carry the strides, so views work without a copy
    matmul_cg_kernel<BLOCK><<<blocks, threads, 0, stream>>>(
        A.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
        B.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
        C.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
    return C;
}
"""

_ext = load_inline(
    name="matmul_coop_groups_accessor",
    cpp_sources='torch::Tensor matmul_cuda(torch::Tensor A, torch::Tensor B);',
    cuda_sources=CUDA_SOURCE,
    functions=['matmul_cuda'],
    with_cuda=True,
    extra_cflags=["-O3"],
    extra_cuda_cflags=["-O3", "--expt-relaxed-constexpr"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.op = _ext

    def forward(self, A, B):
        return self.op.matmul_cuda(A, B)
