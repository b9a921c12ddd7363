import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void softmax_kernel(const float* input, float* output, int dim) {
    extern __shared__ float sdata[];
    int tid = threadIdx.x;
    int row = blockIdx.x;
    const float* in_row = input + row * dim;
    float* out_row = output + row * dim;

    // Step 1: find the max of the row
    float max_val = -INFINITY;
    for (int i = tid; i < dim; i += blockDim.x) {
        max_val = fmaxf(max_val, in_row[i]);
    }
    sdata[tid] = max_val;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] = fmaxf(sdata[tid], sdata[tid + s]);
        __syncthreads();
    }
    max_val = sdata[0];
    __syncthreads();

    // Step 2: sum of exponentials
    float sum = 0.0f;
    for (int i = tid; i < dim; i += blockDim.x) {
        sum += expf(in_row[i] - max_val);
    }
    sdata[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    sum = sdata[0];

    // Step 3: normalize
    for (int i = tid; i < dim; i += blockDim.x) {
        out_row[i] = expf(in_row[i] - max_val) / sum;
    }
}

torch::Tensor softmax_cuda(torch::Tensor x) {
    auto output = torch::empty_like(x);
    int batch_size = x.size(0);
    int dim = x.size(1);
    int threads = 256;
    softmax_kernel<<<batch_size, threads, threads * sizeof(float)>>>(
        x.data_ptr<float>(), output.data_ptr<float>(), dim);
    return output;
}
"""

cpp_src = "torch::Tensor softmax_cuda(torch::Tensor x);"

module = load_inline(
    name="softmax_shared_tree",
    cpp_sources=[cpp_src],
    cuda_sources=[cuda_src],
    functions=['softmax_cuda'],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.op = module

    def forward(self, x):
        return self.op.softmax_cuda(x.contiguous())
