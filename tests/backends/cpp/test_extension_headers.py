"""PyTorch's headers are compiled for the third extension, once, and without harm where that fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.cpp import compiler, extension_headers
from pipeline.backends.cuda import emulated_extension

COMPILER = """#!{python}
import pathlib, sys
with open({log!r}, "a") as log:
    print("asked", file=log)
if {fails}:
    sys.exit(1)
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).touch()
"""
BUILD = """
import sys, time
from pathlib import Path
from torch.utils import cpp_extension
from pipeline.backends.cpp.extension_builds import ExtensionBuilds, stand_in_for_builds
from pipeline.backends.cuda import emulated_extension
builds = ExtensionBuilds(time.perf_counter)
builds.header = Path(sys.argv[2])
stand_in_for_builds(builds, device=False, emulation=emulated_extension.emulation())
cpp_extension.load("kernels", sys.argv[1], build_directory=sys.argv[3], extra_cflags=["-O3", "-H"])
"""
EMPTY = """#include <torch/extension.h>
__global__ void nothing() {}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("nothing", [] { nothing<<<1, 1>>>(); }); }
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A compiler, by its name and whether it fails; the file that has a line for each of its runs."""
    name, fails = request.param
    log, program = tmp_path / "log", tmp_path / "compiler"
    program.write_text(COMPILER.format(python=sys.executable, log=str(log), fails=fails))
    program.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "find", lambda: (str(program),))
    monkeypatch.setattr(compiler, "toolchain", lambda: {"c++": f"{name} 12.2"})
    log.touch()
    return log


@pytest.mark.parametrize("asked", [("g++", False)], indirect=True)
def test_compiled_once_it_pays(asked: Path) -> None:
    """For the third extension; headers for other arguments are removed."""
    few = [extension_headers.for_next_build(["-O1"]) for _ in range(extension_headers.PAYS - 1)]
    assert not any(few)
    header = extension_headers.for_next_build(["-O1"])
    assert header is not None
    assert extension_headers.for_next_build(["-O1"]) == header
    assert asked.read_text().split() == ["asked"]
    others = [extension_headers.for_next_build(["-O2"]) for _ in range(extension_headers.PAYS)]
    assert others[-1] not in {None, header}
    assert not header.exists()


@pytest.mark.parametrize("asked", [("g++", True)], indirect=True)
def test_a_compiler_that_refuses(asked: Path) -> None:
    """Everybody does without, and it is not asked each time."""
    calls = 2 * extension_headers.PAYS
    assert not any(extension_headers.for_next_build([]) for _ in range(calls))
    assert asked.read_text().split() == ["asked"] * 2


@pytest.mark.parametrize("asked", [("clang version", False)], indirect=True)
def test_another_compiler(asked: Path) -> None:
    """Clang reads compiled headers in another way."""
    assert not any(extension_headers.for_next_build([]) for _ in range(extension_headers.PAYS))
    assert not asked.read_text()


@pytest.mark.slow
def test_an_emulated_extension_reads_it(tmp_path: Path) -> None:
    """GCC says which compiled headers it reads (`-H`), and reads none that does not fit the arguments."""
    compiling = emulated_extension.emulation().compiling
    found = [extension_headers.for_next_build(compiling) for _ in range(extension_headers.PAYS)]
    source = tmp_path / "kernels.cu"
    source.write_text(EMPTY)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(source), str(found[-1]), str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"! {found[-1]}.gch" in done.stdout
