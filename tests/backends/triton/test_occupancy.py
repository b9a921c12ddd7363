"""Occupancy against figures that NVIDIA and LLVM give for the same resources."""

import re

import msgspec
import pytest

from pipeline.backends.machine_code.warp_occupancy import Resources, occupancy
from pipeline.backends.registry import backend
from tests.backends.triton.triton_jobs import ROOT, declared_job, target


def bound(hardware, **need):
    """Blocks, share and limiter."""
    found = occupancy(target(hardware), Resources(**{"shared_memory": 0} | need))
    return found.blocks, found.share, found.limiter


@pytest.mark.parametrize(
    ("hardware", "need", "expected"),
    [
        # CUDA C++ Best Practices Guide 12.9, section 11.1.1: 37 registers, blocks of 128 and of 320 threads.
        ("a100", {"threads": 128, "registers": 37}, (12, 0.75, "registers")),
        ("a100", {"threads": 320, "registers": 37}, (4, 0.625, "registers")),
        # cuda_occupancy.h, worked by hand: 255 registers a thread are 8192 a warp, two warps a partition.
        ("h100", {"threads": 256, "registers": 255}, (1, 0.125, "registers")),
        ("h100", {"threads": 256, "registers": 32}, (8, 1.0, "threads")),
        # NVIDIA Hopper Tuning Guide, 1.4.2.3: 227 KB for a block, 228 KB in all, 1 KB reserved a block.
        ("h100", {"threads": 1024, "registers": 32, "shared_memory": 227 * 1024}, (1, 0.5, "shared_memory")),
        ("h100", {"threads": 128, "registers": 32, "shared_memory": 113 * 1024}, (2, 0.125, "shared_memory")),
        (
            "h100",
            {"threads": 128, "registers": 32, "shared_memory": 113 * 1024 + 1},
            (1, 0.0625, "shared_memory"),
        ),
        # 32 blocks (8.0, 9.0, 10.0), 24 blocks (8.9) of one warp each.
        ("b200", {"threads": 32, "registers": 16}, (32, 0.5, "blocks")),
        ("rtx4090", {"threads": 32, "registers": 16}, (24, 0.5, "blocks")),
        ("rtx4090", {"threads": 512, "registers": 40}, (3, 1.0, "threads")),
        # AMD: LLVM's AMDGPU usage, 512 registers a SIMD lane in granules of 8; 64 KiB or 160 KiB of LDS.
        ("mi300x", {"threads": 256, "registers": 128}, (4, 0.5, "registers")),
        ("mi300x", {"threads": 256, "registers": 129}, (3, 0.375, "registers")),
        ("mi300x", {"threads": 256, "registers": 64, "shared_memory": 32769}, (1, 0.125, "shared_memory")),
        ("mi355x", {"threads": 256, "registers": 64, "shared_memory": 32769}, (4, 0.5, "shared_memory")),
        ("mi300x", {"threads": 256, "registers": 32, "scalar_registers": 102}, (7, 0.875, "registers")),
    ],
)
def test_known_values(hardware, need, expected):
    """Blocks a multiprocessor, share of its warps, and what limits them."""
    assert bound(hardware, **need) == expected


def test_unknown_architecture_is_absent_not_guessed():
    """An architecture whose allocation rules nobody entered has no bound."""
    strange = msgspec.structs.replace(target("mi300x"), architecture="gfx1100")
    assert occupancy(strange, Resources(threads=256, registers=64, shared_memory=0)) is None


@pytest.mark.slow
@pytest.mark.parametrize("tunables", [{}, {"BLOCK_M": 128, "BLOCK_N": 128, "num_stages": 3}])
def test_agrees_with_llvm(tmp_path, tunables):
    """LLVM prints the waves a SIMD that registers allow; ours without shared memory are the same."""
    job = declared_job("matmul", "mi300x", **tunables)
    facts = backend("triton").compile(job, ROOT, tmp_path).facts
    printed = re.search(r"; Occupancy: (\d+)", (tmp_path / "kernel.amdgcn").read_text())
    need = Resources(
        threads=facts.threads_per_block,
        registers=facts.registers,
        scalar_registers=facts.scalar_registers,
        shared_memory=0,
    )
    assert occupancy(job.target, need).share * 8 == int(printed[1])
