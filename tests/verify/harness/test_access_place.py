"""An illegal access is repeated under a stand-in for Compute Sanitizer, whose report gives the place."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.cpu import Cpu
from pipeline.backends.devices.cuda import compute_sanitizer
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.verify.harness import session
from pipeline.verify.harness.kernel_trial import try_variant
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import model_subject, try_candidate
from pipeline.verify.harness.planning.preparation import (
    case_set_of,
    cases_of,
    job_of,
    shapes_of,
    subject_of,
)
from tests.paths import ROOT
from tests.verify.harness import build
from tests.verify.harness.candidate_process import SERVER
from tests.verify.harness.problems import SETTINGS, problem_of
from tests.verify.harness.test_slow_interpreter import PROBLEM

SAID = "CUDA error: an illegal memory access was encountered"
PLACE = "__global__ read of 4 bytes in double (double.py:7), thread (1,0,0) of block (2,0,0): 4 bytes after"
TOOL = """#!/bin/sh
while [ "$1" != --log-file ]; do shift; done
log=$2; shift 2
LD_PRELOAD=${0%/*}/injected.so "$@" >"$log.printed" 2>&1
grep -q "illegal memory access" "$log.printed" && cat >"$log" <<END
========= Invalid __global__ read of size 4 bytes
=========     at double+0x70 in /somewhere/double.py:7
=========     by thread (1,0,0) in block (2,0,0)
=========     Access to 0x7f0000001004 is out of bounds
=========     and is 4 bytes after the nearest allocation at 0x7f0000001000 of size 256 bytes
END
"""
"""Reports only if the process that it runs printed the driver's message."""
INJECTED = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *wait(void *none) { for (;;) pause(); }
__attribute__((constructor)) static void start(void) {
  pthread_t thread;
  unsetenv("LD_PRELOAD");
  pthread_create(&thread, NULL, wait, NULL);
}
"""
"""As Compute Sanitizer does, it has a thread in the process before that begins."""
CANDIDATE = f"""
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if WHERE:
            raise RuntimeError({SAID!r})
        return 2 * x
"""
KERNEL = f"""
def launch(x, y, **_):
    raise RuntimeError({SAID!r})
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It is on the path, for a device that has it."""
    enter = "from pipeline.sandbox.confinement.own_network import enter; enter()"
    if subprocess.run([sys.executable, "-c", enter], cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip("this system grants no network namespaces")
    path = tmp_path / "bin" / compute_sanitizer.TOOL
    path.parent.mkdir()
    path.write_text(TOOL)
    path.chmod(0o755)
    (tmp_path / "injected.c").write_text(INJECTED)
    library = path.with_name("injected.so")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, tmp_path / "injected.c", "-lpthread"], check=True
    )
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(Cpu, "memory_checker", lambda _, log: compute_sanitizer.memory_checker(log))
    return path


def candidate_failure(folder: Path, where: str, settings: Verify = SETTINGS) -> Failure:
    """Of a candidate that fails on inputs for which that holds."""
    case_set = ModelCaseSet(problem_of(folder, PROBLEM), settings)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(CANDIDATE.replace("WHERE", where))
    subject = model_subject(path, where="interpreter", limits={}, settings=settings)
    failure = try_candidate(SERVER, subject, case_set, folder).failure
    assert failure is not None
    return failure


@pytest.mark.slow
def test_of_a_candidate(tool: Path, tmp_path: Path) -> None:
    """On sizes that it might have refused: what the device says is no refusal."""
    failure = candidate_failure(tmp_path, "x.numel() != 64")
    assert failure.outcome is Outcome.OUT_OF_BOUNDS
    assert SAID in failure.reason
    assert PLACE in failure.reason
    assert "/somewhere" not in failure.reason


@pytest.mark.slow
def test_of_a_declared_kernel(tool: Path, tmp_path: Path) -> None:
    """By the other calling convention."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    implementation = msgspec.structs.replace(
        build.IMPLEMENTATION, backend="triton", source="kernel.py", entry="launch"
    )
    spec = build.spec(
        target=Target(kind="cuda", architecture="sm_90", limits={"warp_size": 32}),
        device_present=False,
        implementations={"triton": implementation},
    )
    variant = build.variant(KERNEL, implementation="triton", backend="triton")
    compiled = Compiled(
        artifact="kernel.cubin", artifact_digest="", functions=(), facts=StaticFacts(code_bytes=1), files=()
    )
    subject = subject_of(spec, job_of(spec, variant), compiled, root=tmp_path, folder=tmp_path)
    case_set = case_set_of(spec, (1,))
    cases = cases_of(spec, case_set, shapes_of(spec, variant)[:1])
    failure = try_variant(SERVER, subject, case_set, cases, tmp_path).result
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.OUT_OF_BOUNDS
    assert PLACE in failure.reason


@pytest.mark.parametrize("text", [None, "#!/bin/sh\nexit 1\n", "#!/no/such/program\n"])
def test_without_a_report(tool: Path, tmp_path: Path, text: str | None) -> None:
    """The reason stays as it is if the tool is absent, fails or cannot be started."""
    if text is None:
        tool.unlink()
    else:
        tool.write_text(text)
    reason = candidate_failure(tmp_path, "True").reason
    assert reason.startswith(f"RuntimeError: {SAID} (declared sizes")
    assert "__global__" not in reason


@pytest.mark.slow
def test_in_time(tool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that hangs is ended."""
    tool.write_text("#!/bin/sh\nsleep 1000\n")
    monkeypatch.setattr(session, "BUILD_SECONDS", 0.0)
    settings = msgspec.structs.replace(SETTINGS, time_limit=5.0)
    assert "__global__" not in candidate_failure(tmp_path, "True", settings).reason
