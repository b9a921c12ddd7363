"""The emulator's shadow of memory: wrong kernels are found, right ones that look odd are not."""

import pytest
import torch

from pipeline.backends.backend import LaunchError
from pipeline.backends.cuda.emulator import take_memory_faults
from pipeline.records.configuration.kernel import LaunchFormulas
from tests.backends.cuda.cuda_jobs import emulated, written_job
from tests.backends.cuda.race_kernels import ONE_BLOCK, RIGHT, WRONG
from tests.selection import slow_unless

QUICKLY = {"block carry", "load beyond the end", "last block with a fence"}
SOURCE = """
__device__ unsigned ticket;
__device__ int lock;
extern "C" __global__ void kernel(const float* x, float* y, long long n) {{
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    {body}
}}
"""


GRID = LaunchFormulas(grid=("ceil_div(n, 64)",), block=(64,))


def launch_of(name):
    """In one block, or in four."""
    return LaunchFormulas(grid=("1",), block=(64,)) if name in ONE_BLOCK else GRID


def faults_of(folder, launch, body, calls=3):
    """Of each call; the orders of blocks and of copies differ."""
    job = written_job(folder, SOURCE.format(body=body), launch=launch, size=256)
    loaded = emulated(job, folder / "compiled", folder)
    found = []
    for _ in range(calls):
        loaded({"x": torch.arange(1.0, 257.0), "y": torch.zeros(256)})
        found.append(take_memory_faults())
    return found


@pytest.mark.parametrize("name", slow_unless(QUICKLY.__contains__, WRONG))
def test_wrong_kernels_are_found(tmp_path, name):
    """In every call, whatever it computes there."""
    kind = "out_of_bounds" if name.startswith("load") else "race"
    for faults in faults_of(tmp_path, launch_of(name), WRONG[name]):
        assert {fault.kind for fault in faults} == {kind}


@pytest.mark.parametrize("name", slow_unless(QUICKLY.__contains__, RIGHT))
def test_right_kernels_are_not(tmp_path, name):
    """What barriers, fences and atomics order, and what changes nothing."""
    assert faults_of(tmp_path, launch_of(name), RIGHT[name]) == [(), (), ()]


@pytest.mark.slow
def test_a_fault_says_who_and_where(tmp_path):
    """Threads, element and tensor of a race; how far from which tensor an access is."""
    (fault, *_), *_ = faults_of(tmp_path, GRID, "if (t == 63) y[i] = x[i]; if (t == 0 && i) y[i - 1] = 0;", 1)
    assert "thread 0 of block (1, 0, 0) writes element 63 of y" in fault.text
    assert "thread 63 of block (0, 0, 0) writes" in fault.text
    (fault,), *_ = faults_of(tmp_path, GRID, "y[i] = x[i + 2];", 1)
    assert "load of 4 bytes outside of all tensors" in fault.text
    assert "0 bytes past the end of x (1024 bytes)" in fault.text


@pytest.mark.slow
def test_beyond_shared_memory(tmp_path):
    """Past the end of what the launch asks for, which lies next to nothing else."""
    launch = LaunchFormulas(grid=("1",), block=(64,), shared_memory="4 * n")
    body = "extern __shared__ float moving[]; moving[256 + t] = 0; y[i] = 0;"
    (faults,) = faults_of(tmp_path, launch, body, 1)
    assert [fault.kind for fault in faults] == ["out_of_bounds"]
    assert "0 bytes past the end of dynamic shared memory" in faults[0].text


@pytest.mark.slow
def test_a_block_that_waits_for_a_later_one(tmp_path):
    """Needs a device: blocks run one after the other, and none of them forever."""
    body = (
        "if (blockIdx.x == 0) while (atomicAdd(&ticket, 0u) == 0) {} else atomicAdd(&ticket, 1u); y[i] = 1;"
    )
    with pytest.raises(LaunchError, match="needs a device"):
        faults_of(tmp_path, GRID, body)
