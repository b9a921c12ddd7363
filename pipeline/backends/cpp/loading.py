"""Call a compiled C++ kernel on torch tensors, checked against the C ABI."""

import ctypes
import os
from pathlib import Path

import torch

from pipeline.backends.abi import Abi
from pipeline.backends.backend import LaunchError
from pipeline.records.planning.problem import Problem

_NOTHING = "getpagesize"  # of the C library: returns a constant, and does not look at its arguments
_MAPS = Path("/proc/self/maps")


class NativeLaunch:
    """`launch(tensors)`: every tensor by name; writes the outputs in place, raises LaunchError."""

    def __init__(self, library: Path, entry: str, problem: Problem) -> None:
        share_openmp()
        self._entry = entry
        self._abi = Abi(problem, device="cpu")
        self._function = ctypes.CDLL(str(library))[entry]
        self._function.restype = ctypes.c_int
        self._function.argtypes = self._abi.types
        self._nothing = ctypes.CDLL(None)[_NOTHING]
        self._nothing.restype, self._nothing.argtypes = ctypes.c_int, self._abi.types

    def __call__(self, tensors: dict[str, torch.Tensor]) -> None:
        """Arguments are checked, as far as they differ from those of the call before."""
        code = self._function(*self._abi.values(tensors))
        if code != 0:
            raise LaunchError(f"{self._entry} returned {code}")

    def host(self, tensors: dict[str, torch.Tensor]) -> None:
        """All that a call does but the kernel: a function that does nothing gets its arguments."""
        self._nothing(*self._abi.values(tensors))


def share_openmp() -> None:
    """Make kernels that are loaded from now on use the OpenMP runtime that is already in this process.

    A kernel is linked against the compiler's libgomp.so.1; torch brings its own copy, in some releases under
    another name. With both loaded there would be two thread pools: torch.set_num_threads would not reach the
    kernel, and each pool's idle threads would spin on the cores that the other one needs, so candidate and
    baseline would be measured under different conditions. Symbols are looked up in the global scope first, so
    it is enough to put torch's copy there.
    """
    try:
        maps = _MAPS.read_text()
    except OSError:  # not Linux: the loader's own rules apply
        return
    for line in maps.splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith("libgomp"):
            ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_GLOBAL)
            return
