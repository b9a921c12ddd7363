"""The real host libraries, cuda-core and Triton's launcher, on a stand-in for the driver, without a GPU."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends.devices.driver_errors import meaning
from tests import driver_stand_in
from tests.paths import ROOT

pytestmark = pytest.mark.slow  # each compiles a kernel
BACKENDS = ("cuda", "triton")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the library."""
    return driver_stand_in.build(tmp_path_factory.mktemp("driver")).parent


def run(name: str, driver: Path, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Compile, load and launch a softmax."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "CUDA_STAND_IN_LOG": "1"}
    environment |= {"XDG_CACHE_HOME": str(driver / "cache"), **settings}
    command = [sys.executable, "-m", "tests.backends.launch_on_stand_in", name, str(folder)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("name", BACKENDS)
def test_a_launch_reaches_the_driver(name: str, driver: Path, tmp_path: Path) -> None:
    """With its grid, and with the addresses of the tensors first."""
    done = run(name, driver, tmp_path)
    assert done.stdout.startswith("launched"), done.stderr[-2000:]
    ((grid, parameters),) = re.findall(r"grid (\d+) 1 1 block .* parameters (.*)", done.stderr)
    assert grid == "16"  # a block for each row
    assert parameters.split()[:2] == done.stdout.split()[1:]


def test_tritons_driver_is_compiled_once(driver: Path, tmp_path: Path) -> None:
    """By the first process; the caches in which each compiles its kernels are its own."""
    compiler, calls = tmp_path / "compiler", tmp_path / "calls"
    compiler.write_text(f'#!/bin/sh\necho "$@" >>{calls}\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        shared = {"CC": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = run("triton", driver, folder, **shared)
        assert done.stdout.startswith("launched"), done.stderr[-2000:]
    assert calls.read_text().count("cuda_utils.c ") == 1


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(
    ("failing", "what"),
    [
        ("cuInit=304", "unavailable"),
        ("cuInit=805", "unavailable"),
        ("cuLaunchKernelEx=700", "illegal address"),
        ("cuLibraryLoadData=2,cuModuleLoadData=2", "out of memory"),
    ],
)
def test_a_refusal_keeps_its_cause(name: str, failing: str, what: str, driver: Path, tmp_path: Path) -> None:
    """At the start, while loading, in a launch: each ends in an outcome of its own."""
    if name == "triton" and "cuInit" in failing:
        pytest.skip("torch initializes the driver before Triton does, and has its own message")
    done = run(name, driver, tmp_path, CUDA_STAND_IN_FAIL=failing)
    assert done.stdout.startswith("LaunchError"), done.stderr[-2000:]
    assert meaning(done.stdout) == what, done.stdout


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("CUDA error: an illegal memory access was encountered", "illegal address"),
        ("CUDA out of memory. Tried to allocate 20.00 GiB", "out of memory"),
        ("CUDA unknown error - OS call failed or operation not supported on this OS", "unavailable"),
        ("Triton Error [CUDA]: an illegal memory access was encountered", "illegal address"),
        ("shapes cannot be multiplied", None),
    ],
)
def test_messages_of_torch_and_triton(text: str, what: str | None) -> None:
    """They have words of their own."""
    assert meaning(text) == what
