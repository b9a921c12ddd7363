"""The whole harness on a device whose tensors are not the host's: nothing is mixed up, and nothing missed."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.backends.devices.device_registry import device_kinds
from pipeline.records.outcome import Outcome
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from pipeline.verify.harness.process import MODEL_PRELOAD
from tests.lazy_fork_server import LazyForkServer
from tests.second_device import install
from tests.verify.harness.problems import SETTINGS, problem_of

pytestmark = pytest.mark.slow

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(8))
    def forward(self, x):
        return x * self.scale
def get_inputs():
    return [torch.randn(16, 8)]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import ctypes, subprocess, tempfile, torch
SOURCE = '''
extern "C" void scale(float* x, float* w, float* y, long rows, long cols) {
    for (long i = 0; i < rows * cols; ++i) y[i] = x[i] * w[i % cols];
    EXTRA
}
'''
folder = tempfile.mkdtemp()
with open(folder + "/scale.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run(["g++", "-shared", "-fPIC", "-o", folder + "/scale.so", folder + "/scale.cpp"], check=True)
library = ctypes.CDLL(folder + "/scale.so")
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(8))
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        at = [ctypes.c_void_p(each.data_ptr()) for each in (x, self.scale, y)]
        library.scale(*at, ctypes.c_long(x.shape[0]), ctypes.c_long(x.shape[1]))
        return y
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LazyForkServer]:
    """Its children, and this process, have the device."""
    folder = str(install(tmp_path_factory.mktemp("package")))
    sys.path.insert(0, folder)
    device_kinds.cache_clear()
    yield LazyForkServer(preload=MODEL_PRELOAD, environment={"PYTHONPATH": folder})
    sys.path.remove(folder)
    device_kinds.cache_clear()


def tried(server: LazyForkServer, folder: Path, source: str) -> ModelTrialResult:
    """The verdict on a candidate that runs there."""
    case_set = ModelCaseSet(problem_of(folder, PROBLEM), SETTINGS)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(textwrap.dedent(source))
    subject = model_subject(path, where="device", device="second", limits={}, settings=SETTINGS)
    return try_candidate(server, subject, case_set, folder)


def test_a_right_candidate(server: LazyForkServer, tmp_path: Path) -> None:
    """Its weights are taken over and changed; no page is protected there."""
    result = tried(server, tmp_path, CANDIDATE.replace("EXTRA", ""))
    assert result.failure is None
    assert result.launched == ("ctypes",)
    assert not {"protected", "fenced"} & set(result.checks)


@pytest.mark.parametrize(
    ("extra", "outcome"),
    [
        ("y[0] += 1;", Outcome.WRONG_VALUE),
        ("x[0] += 1;", Outcome.INPUT_REUSED),
        ("x[rows * cols] = 1;", Outcome.OUT_OF_BOUNDS),
        ("y[rows * cols] = 1;", Outcome.OUT_OF_BOUNDS),
    ],
)
def test_faults_are_found(server: LazyForkServer, tmp_path: Path, extra: str, outcome: Outcome) -> None:
    """In the tensors that it is given, and in those that it allocates."""
    result = tried(server, tmp_path, CANDIDATE.replace("EXTRA", extra))
    assert result.failure is not None
    assert result.failure.outcome is outcome
