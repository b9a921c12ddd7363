"""CUDA C++ in an extension of PyTorch is judged without a device: what it computes, races, and bounds."""

import re
from pathlib import Path

import pytest

from pipeline.records.outcome import Outcome
from tests.verify.harness.verdicts import verdict_on

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(6, 300)]


def get_init_inputs():
    return []
"""
CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda() && x.is_contiguous(), #x " must be a contiguous CUDA tensor")

template <int BLOCK>
__global__ void __launch_bounds__(BLOCK)
softmax_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float partial[BLOCK / 32], total;
    const float* row = x + static_cast<size_t>(blockIdx.x) * n;
    float most = -INFINITY;
    for (int i = threadIdx.x; i < n; i += BLOCK) most = fmaxf(most, row[i]);
    for (int offset = 16; offset > 0; offset >>= 1) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, offset));
    }
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = most;
    __syncthreads();
    for (int warp = 0; warp < BLOCK / 32; ++warp) most = fmaxf(most, partial[warp]);
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += BLOCK) sum += expf(row[i] - most);
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        total = 0.0f;
        for (int warp = 0; warp < BLOCK / 32; ++warp) total += partial[warp];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += BLOCK) {
        y[static_cast<size_t>(blockIdx.x) * n + i] = expf(row[i] - most) / total;
    }
}

torch::Tensor softmax(torch::Tensor x) {
    CHECK_INPUT(x);
    auto y = torch::empty_like(x);
    if (x.numel() == 0) return y;
    softmax_rows<128><<<x.size(0), 128, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""
softmax = load_inline(
    name="softmax_of_a_test", cpp_sources="torch::Tensor softmax(torch::Tensor x);", cuda_sources=CUDA,
    functions=["softmax"], extra_cuda_cflags=["-O3", "--use_fast_math"], extra_cflags=[""],
    extra_ldflags=[""],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return softmax.softmax(x.cuda().contiguous())
'''
SYNC = "    __syncthreads();\n    for (int i"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "outcome", "reason"),
    [
        pytest.param("", "", None, "", id="right"),
        pytest.param(
            SYNC,
            SYNC.partition("\n")[2],
            Outcome.NONDETERMINISTIC,
            r"kernel 'softmax_rows': .* element 0 of total",
            id="no barrier",
        ),
        pytest.param(
            "<c10/cuda/CUDAEx",
            "<curand_kernel.h>\n#include <c10/cuda/CUDAEx",
            Outcome.DEVICE_UNAVAILABLE,
            "curand",
            id="library",
        ),
    ],
)
def test_verdicts(tmp_path: Path, old: str, new: str, outcome: Outcome | None, reason: str) -> None:
    """As of a Triton kernel in its interpreter."""
    assert CANDIDATE.count(old) == 1 or not old
    result = verdict_on(tmp_path, PROBLEM, CANDIDATE.replace(old, new) if old else CANDIDATE)
    assert result.failure is None if outcome is None else result.failure is not None
    if result.failure is None:
        assert result.launched == ("cuda",)
        return
    assert result.failure.outcome is outcome
    assert re.search(reason, result.failure.reason)


EPILOGUE = """
import torch


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, 16)
        self.scale = torch.nn.Parameter(torch.randn(16))
        self.bias = torch.nn.Parameter(torch.randn(16))

    def forward(self, x):
        return torch.relu(self.linear(x) * self.scale + self.bias)


def get_inputs():
    return [torch.randn(6, 24)]


def get_init_inputs():
    return [24]
"""
SCALES = """
import torch
from torch.utils.cpp_extension import load_inline
{model}

CUDA = r'''
__global__ void epilogue(const float* y, const float* scale, const float* bias, float* out, int n,
                         int columns) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(y[i] * scale[i % columns] + bias[i % columns], 0.f);
}}
torch::Tensor fused(torch::Tensor y, torch::Tensor scale, torch::Tensor bias) {{
    auto out = torch::empty_like(y);
    const int n = y.numel();
    epilogue<<<(n + 127) / 128, 128>>>(y.data_ptr<float>(), scale.data_ptr<float>(), bias.data_ptr<float>(),
                                       out.data_ptr<float>(), n, (int)scale.numel());
    return out;
}}
'''
NAME = "torch::Tensor fused(torch::Tensor y, torch::Tensor scale, torch::Tensor bias);"
module = load_inline(name="epilogue_of_a_test", cpp_sources=NAME, cuda_sources=CUDA, functions=["fused"])


class ModelNew(Model):
    def forward(self, x):
        return module.fused(self.linear(x), self.scale, self.bias)
"""


@pytest.mark.slow
def test_an_epilogue(tmp_path: Path) -> None:
    """Weights and results of PyTorch lie close to other tensors: they are not outside of all of them."""
    model = EPILOGUE.partition("import torch\n")[2].partition("def get_inputs")[0].strip()
    result = verdict_on(tmp_path, EPILOGUE, SCALES.format(model=model))
    assert result.failure is None
    assert result.launched == ("cuda",)
