"""Candidates whose verdicts are known, tried by the judge's harness on the device.

Without a device those in Triton run in its interpreter, if the fault can happen there.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.backends.devices.cuda.toolkit import find_tool
from pipeline.backends.devices.device_registry import HOST
from pipeline.backends.registry import backend
from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.check_report import CheckAnswer
from pipeline.execution.device_check.checked_machine import CONF
from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import option_file
from pipeline.plan.config.schema import to_record
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.environment import prefer_programs_in
from pipeline.records.outcome import Outcome
from pipeline.sandbox.processes.fork_server import ForkServer

SECONDS = 45.0  # of a candidate's own time; a call that hangs takes a third of it
LANGUAGE = "triton"

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1

def get_inputs():
    return [torch.randn(32, 256)]

def get_init_inputs():
    return []
"""
_TRITON = """
import os
import torch, triton
import triton.language as tl

@triton.jit
def affine(x, y, n, beyond, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, 2 * value + 1, mask=at < n + beyond)

@triton.jit
def far(y, distance):
    tl.store(y + distance, 0.0)

@triton.jit
def wait(flag):
    seen = tl.atomic_add(flag, 0)
    while seen == 0:
        seen = tl.atomic_add(flag, 0)

@triton.jit
def product(a, b, c, steps, SIZE: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr):
    rows, inner = tl.arange(0, SIZE), tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for step in tl.range(0, steps, num_stages=STAGES):
        left = tl.load(a + rows[:, None] * 4096 + step * DEPTH + inner[None, :])
        right = tl.load(b + (step * DEPTH + inner[:, None]) * 4096 + rows[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * SIZE + rows[None, :], total)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        BEFORE
        affine[(triton.cdiv(n + BEYOND, 128),)](x, y, n, BEYOND, 128)
        AFTER
        return y
"""
_SHARED_MEMORY = (
    "z = torch.zeros(4096, 4096, device=x.device, dtype=torch.float16);"
    " t = torch.empty(128, 128, device=x.device);"
    " product[(1,)](z, z, t, 32, SIZE=128, DEPTH=64, STAGES=12, num_warps=8)"
)
_KERNEL = """
__global__ void affine_kernel(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
"""
_EXTENSION = f'''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <c10/cuda/CUDAStream.h>
{_KERNEL}
torch::Tensor affine(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  long n = x.numel();
  if (n > 0)
    affine_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}}
"""
extension = load_inline(
    name="affine_extension", cpp_sources="torch::Tensor affine(torch::Tensor x);", cuda_sources=CUDA,
    functions=["affine"],
)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.affine(x.contiguous())
'''
_CTYPES = f'''
import ctypes, subprocess, tempfile, torch

CUDA = """
{_KERNEL}
extern "C" int affine(const float* x, float* y, long n) {{
  if (n > 0) affine_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
  return (int)cudaGetLastError();
}}
"""
folder = tempfile.mkdtemp()
with open(folder + "/affine.cu", "w") as file:
    file.write(CUDA)
major, minor = torch.cuda.get_device_capability()
command = ["nvcc", "-shared", "-Xcompiler", "-fPIC", f"-arch=sm_{{major}}{{minor}}"]
subprocess.run([*command, "-o", folder + "/affine.so", folder + "/affine.cu"], check=True)
library = ctypes.CDLL(folder + "/affine.so")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        at = [ctypes.c_void_p(each.data_ptr()) for each in (x, y)]
        if library.affine(*at, ctypes.c_long(x.numel())) != 0:
            raise RuntimeError("the kernel was not launched")
        return y
'''


class KnownCandidate(NamedTuple):
    """A candidate and the verdict that it must get."""

    source: str
    expected: tuple[Outcome, ...]
    lacks: Callable[[], str | None] = lambda: None
    """What of the machine it needs and does not find."""
    interpreted: bool = True
    """Whether its verdict in the interpreter is the same."""
    limit: float = 150.0
    """Seconds for all of it, the judge's time included."""


def _triton(*, before: str = "pass", after: str = "pass", beyond: int = 0) -> str:
    return _TRITON.replace("BEFORE", before).replace("AFTER", after).replace("BEYOND", str(beyond))


def _lacks_nvcc() -> str | None:
    return None if find_tool("nvcc") else "nvcc is not installed"


def _lacks_build_tools() -> str | None:
    ninja = find_tool("ninja")
    return _lacks_nvcc() or (None if ninja else "ninja is not installed, which load_inline needs")


CANDIDATES = {
    "out of bounds": KnownCandidate(_triton(beyond=8), (Outcome.OUT_OF_BOUNDS,)),
    "illegal address": KnownCandidate(
        _triton(before="far[(1,)](y, 1 << 45)"),
        (Outcome.OUT_OF_BOUNDS,),
        limit=240.0,  # the call is repeated, under compute-sanitizer
    ),
    "hang": KnownCandidate(
        _triton(before="wait[(1,)](torch.zeros(1, device=x.device, dtype=torch.int32))"),
        (Outcome.TIMEOUT,),
        interpreted=False,  # it refuses to wait for another program
    ),
    "crash": KnownCandidate(_triton(after="os.abort()"), (Outcome.CRASHED,)),
    "too much shared memory": KnownCandidate(
        _triton(before=_SHARED_MEMORY), (Outcome.LAUNCH_ERROR, Outcome.OUT_OF_MEMORY), interpreted=False
    ),
    "right, Triton": KnownCandidate(_triton(), (Outcome.PASSED,)),
    "right, load_inline": KnownCandidate(
        _EXTENSION,
        (Outcome.PASSED,),
        lacks=_lacks_build_tools,
        interpreted=False,
        limit=240.0,  # PyTorch's headers
    ),
    "right, ctypes": KnownCandidate(_CTYPES, (Outcome.PASSED,), lacks=_lacks_nvcc, interpreted=False),
}


def check_candidate(setting: CheckSetting) -> CheckAnswer:
    """The verdict on one of `CANDIDATES`, compared with the expected one."""
    candidate = CANDIDATES[setting.subject]
    present = setting.device is not None
    lacking = candidate.lacks()
    if not present and not candidate.interpreted:
        also = f"; {lacking}" if lacking else ""
        return CheckAnswer(status="absent", detail=f"{setting.absence}{also}")
    if lacking:
        return CheckAnswer(status="absent", detail=lacking)
    folder = Path(setting.folder).absolute() / f"candidate {setting.subject}"
    folder.mkdir(parents=True, exist_ok=True)
    outcome, reason, figures = _tried(setting, candidate, folder)
    expected = " or ".join(each.value for each in candidate.expected)
    right = outcome in candidate.expected
    detail = f"expected {expected}, found {outcome.value}" + (f": {reason}" if reason else "")
    if not right:
        return CheckAnswer(status="failed", detail=detail, figures=figures)
    if not present:
        return CheckAnswer(
            status="absent", detail=f"{setting.absence}; in the interpreter: {detail}", figures=figures
        )
    return CheckAnswer(status="ok", detail=detail, figures=figures)


def _tried(
    setting: CheckSetting, candidate: KnownCandidate, folder: Path
) -> tuple[Outcome, str, dict[str, str]]:
    from pipeline.verify.harness.process import MODEL_PRELOAD

    environment = {}
    interpreter = backend(LANGUAGE).interpreter
    if setting.device is None and interpreter is not None:
        environment = interpreter.environment
    problem, path = written(candidate, folder)
    settings = _settings()
    with ForkServer(preload=MODEL_PRELOAD, environment=environment) as server:
        import torch

        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // 2))
        from pipeline.sandbox.models.model_problem import ModelProblem
        from pipeline.verify.harness.model_cases import ModelCaseSet
        from pipeline.verify.harness.model_trial import LOG, model_subject, try_candidate

        case_set = ModelCaseSet(ModelProblem(problem), settings)
        case_set.prepare()
        subject = model_subject(
            path,
            where="interpreter" if setting.device is None else "device",
            device=HOST if setting.device is None else setting.kind,
            limits={},
            settings=settings,
        )
        tried = try_candidate(server, subject, case_set, folder)
    log = folder / LOG
    print(log.read_text(errors="replace") if log.is_file() else "", flush=True)
    figures = {
        "calls": str(tried.calls),
        "isolation": ", ".join(tried.isolation),
        "launched": ", ".join(tried.launched),
        "notes": "; ".join(tried.notes),
        "checks": ", ".join(tried.checks),
    }
    if tried.failure is None:
        return Outcome.PASSED, tried.untried, figures
    return tried.failure.outcome, tried.failure.reason, figures


def written(candidate: KnownCandidate, folder: Path) -> tuple[Path, Path]:
    """Problem and candidate as files in a folder; what builds them is on the path then."""
    for name in ("ninja", "nvcc"):
        tool = find_tool(name)
        if tool is not None and shutil.which(name) is None:  # else the path's order stays
            prefer_programs_in(Path(tool).parent)
    problem, path = folder / "problem.py", folder / "candidate.py"
    problem.write_text(PROBLEM)
    path.write_text(candidate.source)
    return problem, path


def _settings() -> Verify:
    """Those of `verify=fast`, with less time, so that a hang is soon found."""
    with composer(CONF) as hydra:
        fast = to_record(hydra.option("verify", "fast"), Verify, option_file(CONF, "verify", "fast"))
    return msgspec.structs.replace(fast, time_limit=SECONDS, interpreter_elements_at_most=4096)
