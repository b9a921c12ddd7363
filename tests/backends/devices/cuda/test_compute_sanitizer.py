"""Reports of Compute Sanitizer in the forms of its versions, and where the tool is found."""

from pathlib import Path

import pytest

from pipeline.backends.devices.cuda import toolkit
from pipeline.backends.devices.cuda.compute_sanitizer import first_report, memory_checker

WITH_LINES = """\
========= COMPUTE-SANITIZER
output of the program
========= Invalid __global__ write of size 4 bytes
=========     at void scale<(int)4>(float *, int)+0x70 in /home/user/kernels/scale.cu:12
=========     by thread (31,0,0) in block (7,0,0)
=========     Access to 0x7f0000001004 is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f0000001000 of size 1,024 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x1234] in program
=========
========= Invalid __global__ write of size 4 bytes
=========     at second(float *)+0x10
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x10 is out of bounds
=========
========= ERROR SUMMARY: 2 errors
"""
WRAPPED = """\
========= Invalid __shared__ read of size 16 bytes
=========     at reduce(float const*, float*)+0x2a0
=========       in /home/user/reduce.cu:40
=========     by thread (1,2,3) in block (0,0,0)
=========     Address 0x1008 is misaligned
=========     Device Frame: helper(float*)+0x20 in /home/user/reduce.cu:7
========= ERROR SUMMARY: 1 error
"""
BEFORE_12 = """\
========= Invalid __global__ read of size 8 bytes
=========     at 0x3b0 in /home/user/.cache/triton/kernel.py:175:matmul_kernel_0d1d
=========     by thread (96,0,0) in block (44,0,0)
=========     Address 0x763995f9f000 is out of bounds
=========     and is 1,241,911,296 bytes before the nearest allocation at 0x7639e0000000 of size 4096 bytes
"""
WITHOUT_LINES = """\
========= Invalid __global__ atomic of size 2 bytes
=========     at (anonymous namespace)::add(__half *)+0x1f0
=========     by thread (0,0,0) in block (0,1,0)
=========     Address 0x0 is out of bounds
=========
"""
WITHOUT_OFFSET = WITHOUT_LINES.replace(
    "at (anonymous namespace)::add(__half *)+0x1f0", "at 0x80 in add(__half *)"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            WITH_LINES,
            "__global__ write of 4 bytes in scale (scale.cu:12), thread (31,0,0) of block (7,0,0):"
            " 5 bytes after the nearest allocation of 1,024 bytes",
        ),
        (
            WRAPPED,
            "__shared__ read of 16 bytes in reduce (reduce.cu:40), thread (1,2,3) of block (0,0,0):"
            " misaligned",
        ),
        (
            BEFORE_12,
            "__global__ read of 8 bytes in matmul_kernel_0d1d (kernel.py:175), thread (96,0,0) of block"
            " (44,0,0): 1,241,911,296 bytes before the nearest allocation of 4096 bytes",
        ),
        (
            WITHOUT_LINES,
            "__global__ atomic of 2 bytes in (anonymous namespace)::add, thread (0,0,0) of block (0,1,0):"
            " out of bounds",
        ),
        (
            WITHOUT_OFFSET,
            "__global__ atomic of 2 bytes in add, thread (0,0,0) of block (0,1,0): out of bounds",
        ),
    ],
)
def test_the_first_report(text: str, line: str) -> None:
    """Kernel, file and line as far as they are there, the access, and what lies next to the address."""
    assert first_report(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
        "========= Error: No attachable process found. compute-sanitizer timed-out.\n",
        "========= Invalid __global__ read of size 4 bytes\n",
        "Invalid __global__ read of size 4 bytes\n    at a+0x1\n",
    ],
)
def test_no_report(text: str) -> None:
    """Nothing found, the tool failed, a log that ends early, what the program itself printed."""
    assert first_report(text) is None


def test_where_the_tool_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the path, or next to nvcc; absent is absent."""
    monkeypatch.setattr(toolkit, "_PLACE", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    log = tmp_path / "log"
    assert memory_checker(log) is None
    for name in ("path/nvcc", "toolkit/bin/nvcc", "toolkit/bin/compute-sanitizer"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(0o755)
    (tmp_path / "path" / "nvcc").unlink()
    (tmp_path / "path" / "nvcc").symlink_to(tmp_path / "toolkit" / "bin" / "nvcc")
    checker = memory_checker(log)
    assert checker is not None
    assert checker.command[0] == str(tmp_path / "toolkit" / "bin" / "compute-sanitizer")
    assert checker.command[-2:] == ("--log-file", str(log))
