"""Processes that have torch's compiler imported: for jobs of the warm worker alone."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.measure.hosting import torch_compile
from pipeline.sandbox.processes.fork_server import ForkServer

PROGRAM = """
import sys
from pipeline.measure.hosting import torch_compile
torch_compile.load()
import torch
print(torch._inductor.config.compile_threads, "torch._inductor.compile_fx" in sys.modules)
"""

PICKED = """
import sys
from pipeline.measure.hosting import torch_compile
torch_compile.load()
if sys.argv[1] == "trusted":
    torch_compile.trust_vector_instructions()
from torch._inductor import cpu_vec_isa
found = cpu_vec_isa.pick_vec_isa()
print(found, found.build_arch_flags())
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is started; what was asked for."""
    found: list[str] = []

    def fork_server(worker: Path, prepare: str) -> Any:
        found.extend((str(worker), prepare))

    monkeypatch.setattr(torch_compile, "fork_server", fork_server)
    return found


def test_not_in_a_warm_job(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that runs by itself, and one on a cluster's node, start no process that could outlive them."""
    monkeypatch.delenv("KERNELMILL_WARM", raising=False)
    assert torch_compile.warm_server() is None
    monkeypatch.setenv("KERNELMILL_WARM", "/tmp/worker.sock")
    monkeypatch.setenv("KERNELMILL_ON_NODE", "1")
    assert torch_compile.warm_server() is None
    assert asked == []


def test_in_a_warm_job(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for; where there can be none, the job goes on without."""
    monkeypatch.setenv("KERNELMILL_WARM", "/tmp/worker.sock")
    monkeypatch.delenv("KERNELMILL_ON_NODE", raising=False)
    assert torch_compile.warm_server() is None
    assert asked == ["/tmp/worker.sock", "pipeline.measure.hosting.torch_compile:load"]
    module, _, name = torch_compile.PREPARE.partition(":")
    assert getattr(sys.modules[module], name) is torch_compile.load


def test_the_server_is_of_the_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the warm worker hands out is what the baselines are forked from."""
    control = object()
    monkeypatch.setenv("KERNELMILL_WARM", "/tmp/worker.sock")
    monkeypatch.delenv("KERNELMILL_ON_NODE", raising=False)
    monkeypatch.setattr(torch_compile, "fork_server", lambda worker, prepare: control)
    monkeypatch.setattr(ForkServer, "at", lambda given: ("at", given))
    assert torch_compile.warm_server() == ("at", control)


@pytest.mark.slow
def test_loading_starts_no_pool_of_compilers() -> None:
    """Which would take longer than the one file that there is to build."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["1", "True"]


def picked(how: str, folder: Path, **environment: str) -> str:
    """The vector instructions that torch's compiler chooses, and the options that it compiles with."""
    ended = subprocess.run(
        [sys.executable, "-c", PICKED, how],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder)} | environment,
    )
    return ended.stdout


@pytest.mark.slow
def test_vector_instructions_are_not_tried_out(tmp_path: Path) -> None:
    """The same are chosen, and the compiler is not called: it need not be there, as it must for trying."""
    missing = {"CXX": str(tmp_path / "no-compiler")}
    trusted = picked("trusted", tmp_path / "trusted", **missing)
    assert trusted == picked("tried", tmp_path / "tried")
    with pytest.raises(subprocess.CalledProcessError):
        picked("tried", tmp_path / "missing", **missing)
    assert list(tmp_path.glob("trusted/**/*.so")) == []


@pytest.mark.parametrize(
    ("kernels", "made", "precompiled"), [(4, False, False), (5, False, True), (0, True, True)]
)
def test_header(
    kernels: int, made: bool, precompiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of few kernels never pays for it, and one that finds it takes it."""
    import torch._inductor.config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for number in range(kernels):
        kernel = tmp_path / "cache" / f"{number}" / "kernel.so"
        kernel.parent.mkdir(parents=True)
        kernel.touch()
    if made:
        from torch._inductor.runtime.cache_dir_utils import default_cache_dir

        header = Path(default_cache_dir()) / torch_compile.HEADERS / "header.h.gch"
        header.parent.mkdir(parents=True)
        header.touch()
    with torch._inductor.config.patch(cpp_cache_precompile_headers=not precompiled):
        torch_compile.choose_header()
        assert torch._inductor.config.cpp_cache_precompile_headers is precompiled


def test_where_torch_keeps_its_headers() -> None:
    """In another folder they would not be found."""
    from torch._inductor import codecache
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert Path(codecache._HEADER_DIR) == Path(default_cache_dir()) / torch_compile.HEADERS
