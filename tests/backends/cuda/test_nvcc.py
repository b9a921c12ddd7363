"""Sources of extensions are compiled for an absent target by nvcc: facts, and whose fault a refusal is."""

from pathlib import Path

import pytest

from pipeline.backends.backend import CompiledExtension
from pipeline.backends.cpp.extension_builds import ExtensionSources
from pipeline.backends.cuda.nvcc import extension_compiler
from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Outcome

TARGET = Target(kind="cuda", architecture="sm_90a", limits={})
SOURCE = """
#include <ATen/cuda/CUDAContext.h>
template <class T, int N>
__global__ void rows(const T* x, T* y) {
    __shared__ T part[N];
    part[threadIdx.x] = x[blockIdx.x * N + threadIdx.x];
    __syncthreads();
    y[blockIdx.x * N + threadIdx.x] = part[N - 1 - threadIdx.x];
}
namespace own { __global__ void ones(float* y) { y[threadIdx.x] = 1.0f; } }
void run(const float* x, float* y) {
    rows<float, 64><<<1, 64, 0, at::cuda::getCurrentCUDAStream()>>>(x, y);
    own::ones<<<1, 64>>>(y);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
REFUSALS = {
    'cuda.cu(25): error: identifier "flaot" is undefined': "compile_error",
    'own.cuh(3): error: expected a ";"': "compile_error",
    "ptxas error   : Entry function 'f' uses too much shared data (0x20000 bytes)": "compile_error",
    "nvcc fatal   : Unknown option '-own-flag'": "compile_error",
    'cuda.cu(9): error: namespace "at::cuda" has no member "warp_size"': "",
    "cuda.cu:3:10: fatal error: cublas_v2.h: No such file or directory": "",
    "/usr/include/torch/Half.h(80): error: no suitable conversion": "",
    "nvcc error   : 'cicc' died due to signal 9 (Kill signal)": "",
    "": "",
}


def compiled(folder: Path, source: str, *flags: str) -> CompiledExtension:
    """By the nvcc that is found."""
    (folder / "cuda.cu").write_text(source)
    (folder / "own.cuh").write_text("")
    compiler = extension_compiler(TARGET)
    assert compiler is not None
    return compiler.compile(
        ExtensionSources(
            sources=(folder / "cuda.cu",), folder=folder, macros=("NAME=x",), folders=(), flags=flags
        )
    )


@pytest.mark.parametrize("printed", REFUSALS)
def test_whose_fault_a_refusal_is(printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header or a program that is missing here is no fault of the sources."""
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{printed}\nEND\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    found = compiled(tmp_path, "", "-own-flag")
    assert ("" if found.failure is None else found.failure.outcome) == REFUSALS[printed]
    assert bool(found.incomplete) != bool(REFUSALS[printed])


@pytest.mark.skipif(extension_compiler(TARGET) is None, reason="nvcc is not installed")
def test_facts(tmp_path: Path) -> None:
    """Each kernel's, by the name that its author gave it; flags for other targets are left out."""
    found = compiled(tmp_path, SOURCE, "-O3", "-gencode", "arch=compute_80,code=sm_80", "-arch=sm_70")
    assert found.failure is None
    assert not found.incomplete
    assert {name: facts.shared_memory for name, facts in found.kernels.items()} == {
        "rows<float, 64>": 256,
        "own::ones": 0,
    }
    assert all(facts.registers and facts.spills == 0 for facts in found.kernels.values())


@pytest.mark.skipif(extension_compiler(TARGET) is None, reason="nvcc is not installed")
def test_operators_that_pytorch_turns_off(tmp_path: Path) -> None:
    """Its flags leave out the operators of `__half`, unless the source's own bring them back."""
    source = "#include <cuda_fp16.h>\n__global__ void f(__half* x) { x[0] = x[1] * x[2]; }"
    failure = compiled(tmp_path, source).failure
    assert failure is not None
    assert failure.outcome is Outcome.COMPILE_ERROR
    assert failure.reason.startswith("nvcc: cuda.cu:2: ")
    assert compiled(tmp_path, source, "-U__CUDA_NO_HALF_OPERATORS__").kernels["f"].registers
