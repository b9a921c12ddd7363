"""Ceilings of the processor: streams and multiply-adds in C++, matrix products through torch."""

import ctypes
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.launch import share_openmp
from pipeline.errors import ToolchainError
from pipeline.measure.ceilings import LIBRARY, DeviceCeilings, envelope, sizes
from pipeline.measure.processor import last_level_cache
from pipeline.measure.timer_cpu import CpuTimer

if TYPE_CHECKING:
    import torch

SOURCE = Path(__file__).parent / "ceilings.cpp"
COMPILE_SECONDS = 60.0
SMALLEST = 16 << 10  # bytes of one array
BEYOND_CACHE = 4  # the largest array is so many times the last-level cache,
LARGEST = 1 << 30  # but not larger
POINT_SECONDS = 0.02  # for one bandwidth
VECTOR_SECONDS = 0.05
MATRIX_SIZES = (256, 512, 1024, 2048)
MATRIX_CALLS = 4
MATRIX_SECONDS = 0.2  # one product; float16 takes 43 s at 2048 where the library has no kernel for it


def measure(folder: Path) -> DeviceCeilings:
    """Everything, in about 2 s; the compiled part is kept in `folder`."""
    import torch

    timer = CpuTimer(flush_cache=False)
    timer.prepare()
    share_openmp()
    library = _library(folder)
    copy, read = _streams(library)
    dtypes = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    return DeviceCeilings(
        copy=envelope(copy),
        read=envelope(read),
        matrix_flops={name: _matrix(dtype) for name, dtype in dtypes.items()},
        vector_flops=library.ceilings_vector(VECTOR_SECONDS),
    )


def _library(folder: Path) -> ctypes.CDLL:
    """Compile what is not compiled yet.

    Raises
    ------
    ToolchainError
        There is no compiler, or it fails.
    """
    path = folder / LIBRARY
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made, log = Path(scratch) / LIBRARY, Path(scratch) / "log.txt"
            arguments = ["-o", str(made), str(SOURCE)]
            failure = compiler.run(arguments, folder=Path(scratch), log=log, seconds=COMPILE_SECONDS)
            if failure is not None:
                raise ToolchainError(f"{SOURCE.name}: {failure.reason}")
            made.replace(path)
    library = ctypes.CDLL(str(path))
    number, size, pointer = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p
    for name, result, arguments_of in (
        ("allocate", pointer, (size,)),
        ("free", None, (pointer,)),
        ("copy", number, (pointer, pointer, size, number)),
        ("read", number, (pointer, size, number)),
        ("vector", number, (number,)),
    ):
        function = getattr(library, f"ceilings_{name}")
        function.restype, function.argtypes = result, arguments_of
    return library


def _streams(library: ctypes.CDLL) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Copy and read bandwidth by working set."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    largest = min(LARGEST, BEYOND_CACHE * last_level_cache(), memory // 8)
    one, other = library.ceilings_allocate(largest), library.ceilings_allocate(largest)
    if not one or not other:
        raise MemoryError(f"no memory for two arrays of {largest} bytes")
    copy, read = [], []
    for size in [size for size in sizes(SMALLEST, largest) if size <= largest]:
        copy.append((2 * size, library.ceilings_copy(one, other, size, POINT_SECONDS)))
        read.append((size, library.ceilings_read(one, size, POINT_SECONDS)))
    library.ceilings_free(one)
    library.ceilings_free(other)
    return copy, read


def _matrix(dtype: "torch.dtype") -> float:
    """The best of square products as large as the time allows."""
    import torch

    best = 0.0
    for size in MATRIX_SIZES:
        a, b = torch.ones(size, size, dtype=dtype), torch.ones(size, size, dtype=dtype)
        c = torch.empty(size, size, dtype=dtype)
        fewest = min(_product_seconds(a, b, c) for _ in range(MATRIX_CALLS))
        best = max(best, 2.0 * size**3 / fewest)
        if 8 * fewest > MATRIX_SECONDS:
            break
    return best


def _product_seconds(a: "torch.Tensor", b: "torch.Tensor", c: "torch.Tensor") -> float:
    import torch

    start = time.perf_counter()
    torch.matmul(a, b, out=c)
    return time.perf_counter() - start
