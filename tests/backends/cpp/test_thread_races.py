"""The detector of data races: kernels whose threads race, and right ones that look as if they did."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
import torch

from pipeline.backends.backend import MemoryFault
from pipeline.backends.cpp import compiler, thread_races
from pipeline.backends.cpp.thread_races import WatchedLibrary
from pipeline.records.errors import ToolchainError

SOURCE = Path(__file__).parent / "sources" / "threads.cpp"
NAMES = re.findall(r"^KERNEL\((\w+)\)", SOURCE.read_text(), re.MULTILINE)
SIZE = (37, 29)
THREADS = (2, 3, 5)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All kernels in one instrumented object, by the wrapper that stands in for the compiler."""
    folder = tmp_path_factory.mktemp("races")
    thread_races.write_wrappers(folder / "bin", thread_races.detector())
    built = folder / "threads.so"
    flags = ("-std=c++17", "-O1", "-fopenmp", "-shared", "-fPIC", "-march=native", "-Wl,-z,defs")
    command = [str(folder / "bin" / "g++"), *flags, "-o", str(built), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


def races(library: Path, name: str) -> list[tuple[MemoryFault, ...]]:
    """What is found on each number of threads, forwards and backwards."""
    watched, function = WatchedLibrary(library), ctypes.CDLL(str(library))[name]
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    function.restype = None
    x, found = torch.randn(SIZE), []
    for threads in (*THREADS, *THREADS):
        y = torch.full(SIZE, 7.0)
        watched.begin(threads)
        function(x.data_ptr(), y.data_ptr(), *SIZE)
        found.append(watched.take({"x": x, "y": y}))
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("wrong_")])
def test_races_are_found(library: Path, name: str) -> None:
    """In every call, on each number of threads."""
    assert all(races(library, name))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("right_")])
def test_right_kernels_have_none(library: Path, name: str) -> None:
    """Locks, atomic operations, barriers, own memory and equal values are no races."""
    assert not any(races(library, name))


def test_a_race_is_named(library: Path) -> None:
    """Source line, threads, kind of access, and the element of a tensor."""
    lines = SOURCE.read_text().splitlines()
    line = 1 + next(
        number for number, text in enumerate(lines) if "y[r * cols + c] = x[r * cols] + r;" in text
    )
    (fault, *_), *_ = races(library, "wrong_overlapping_rows")
    assert f"threads.cpp:{line}" in fault.text
    assert re.search(r"thread 1 writes element \d+ of y, which thread 0 writes", fault.text)
    (fault, *_), *_ = races(library, "wrong_shared_scale")
    assert "a shared variable" in fault.text


def test_another_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without GCC there is no detector, and the reason names what is there."""
    monkeypatch.setattr(compiler, "toolchain", lambda: {"c++": "Debian clang version 14.0.6"})
    with pytest.raises(ToolchainError, match="clang version 14"):
        thread_races.detector()
