"""Functions that native code finds by name while it runs."""

import _ctypes
import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pipeline.verify.harness.observers.symbol_lookups import SymbolLookups

TORCH = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
SOURCE = """
#include <dlfcn.h>
extern "C" int answer() { return 42; }
extern "C" void* look(const char* library, const char* name) {
    return dlsym(library ? dlopen(library, RTLD_NOW) : RTLD_DEFAULT, name);
}
"""


@pytest.fixture(params=["-Wl,-z,lazy", "-Wl,-z,now", "-fno-plt"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A library that looks up what it is asked for; linked in each way that pointers to functions can lie."""
    (tmp_path / "own.cpp").write_text(SOURCE)
    command = ["g++", "-shared", "-fPIC", request.param, "own.cpp", "-o", "own.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path / "own.so"


@pytest.fixture
def library(path: Path) -> Iterator[ctypes.CDLL]:
    """It, loaded; other tests look at what is loaded in this process."""
    loaded = ctypes.CDLL(str(path))
    loaded.look.restype = ctypes.c_void_p
    yield loaded
    _ctypes.dlclose(loaded._handle)


def test_what_computes_is_named(path: Path, library: ctypes.CDLL) -> None:
    """A function of PyTorch's library is; those of the C library and its own are not; all are found."""
    lookups = SymbolLookups()
    lookups.watch(str(path))
    assert lookups.found(str(path)) == ()
    assert library.look(str(TORCH).encode(), b"sgemm_")
    assert library.look(b"libm.so.6", b"sin")
    assert library.look(str(TORCH).encode(), b"no_such_function") is None
    own = library.look(None, b"answer")
    assert ctypes.CFUNCTYPE(ctypes.c_int)(own)() == 42
    assert lookups.found(str(path)) == ("libtorch_cpu.so:sgemm_",)


def test_libraries_that_cannot_be_read(tmp_path: Path) -> None:
    """No library, a text, a file that is not loaded: nothing is watched, nothing fails."""
    lookups = SymbolLookups()
    (tmp_path / "text.so").write_text("no library")
    for name in ("", "absent.so", str(tmp_path / "text.so"), str(TORCH)):
        lookups.watch(name)
        assert lookups.found(name) == ()
