"""The whole harness on a device whose tensors are not the host's: nothing is mixed up, and nothing missed."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.backends.devices.device_registry import HOST, device, device_kinds
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.entry_points import entry_points
from pipeline.records.outcome import Outcome
from pipeline.records.planning.problem import Problem
from pipeline.verify.harness import kernel_cases, model_cases
from pipeline.verify.harness.kernel_cases import KernelCaseSet
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from pipeline.verify.harness.observers.allocations import GuardedAllocations
from pipeline.verify.harness.observers.data_flow import DataFlow
from pipeline.verify.harness.observers.kernel_launches import LaunchLog
from pipeline.verify.harness.planning.case_plans import CasePlan
from pipeline.verify.harness.planning.shapes import Shape
from pipeline.verify.harness.process import MODEL_PRELOAD
from pipeline.verify.oracle.reference import ReferenceOracle
from pipeline.verify.oracle.rounding.expectation import Allowance, RandomReference, expectation
from pipeline.verify.oracle.tolerance import Expected
from tests.lazy_fork_server import LazyForkServer
from tests.second_device import install
from tests.verify.harness.build import TOLERANCE
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
LARGE = PROBLEM.replace("randn(16, 8)", "randn(rows, 8)") + "rows = 262144\n"
"""Too large for most calls."""
PRODUCT = Problem(
    kernel="matmul",
    dimensions={"M": 1024, "N": 512, "K": 8},
    tensors={
        "a": Tensor(role="input", shape=("M", "K"), dtype="float32"),
        "b": Tensor(role="input", shape=("K", "N"), dtype="float32"),
        "c": Tensor(role="output", shape=("M", "N"), dtype="float32"),
    },
    scalars={},
    attributes={},
    element="float32",
)
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
    _forget_packages()
    yield LazyForkServer(preload=MODEL_PRELOAD, environment={"PYTHONPATH": folder})
    sys.path.remove(folder)
    _forget_packages()


def _forget_packages() -> None:
    """Other tests of this process have asked what is installed."""
    entry_points.cache_clear()
    device_kinds.cache_clear()


def tried(server: LazyForkServer, folder: Path, source: str, problem: str = PROBLEM) -> ModelTrialResult:
    """The verdict on a candidate that runs there."""
    case_set = ModelCaseSet(problem_of(folder, problem), SETTINGS, "second")
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(textwrap.dedent(source))
    subject = model_subject(path, where="device", device="second", limits={}, settings=SETTINGS)
    return try_candidate(server, subject, case_set, folder)


def large_plan(case_set: ModelCaseSet) -> CasePlan:
    """The one on declared sizes that are tried once."""
    (plan,) = (each for each in case_set.plans if each.condition.kind == "full")
    return plan


@pytest.mark.usefixtures("server")
def test_declared_sizes_are_expected_as_the_host_expects_them(tmp_path: Path) -> None:
    """From float64 on the device, with sampled bounds; all tensors of the case lie on the host."""
    case_set = ModelCaseSet(problem_of(tmp_path, LARGE), SETTINGS, "second")
    case_set.prepare()
    case = case_set.case(large_plan(case_set))
    assert case is not None
    (found,) = case.expected
    model, arguments = case.plan.model, case.plan.encoded.decode()
    (wanted,) = expectation(model, arguments, seed=case.condition.seed, allowance=Allowance())
    assert found.spread is not None and wanted.spread is not None
    assert torch.equal(found.reference, wanted.reference)
    for name in ("bound", "spread"):  # sampled with other random numbers
        assert float(getattr(found, name).mean() / getattr(wanted, name).mean()) == pytest.approx(1, rel=0.02)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("refused", [False, True])
def test_large_cases_of_declared_kernels(monkeypatch: pytest.MonkeyPatch, refused: bool) -> None:
    """Computed there as the host computes them; by the host where the device cannot."""
    places: list[str] = []

    def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        places.append(a.device.type)
        if refused and a.device.type == "second":
            raise torch.OutOfMemoryError("full")
        return a @ b

    shape = Shape(edge="workload", dimensions={"M": 1024, "N": 512, "K": 8})
    monkeypatch.setattr(kernel_cases, "LARGE", 1 << 19)
    prepared = []
    for kind in ("second", HOST):
        found = ReferenceOracle(reference=reference, magnitude=None, tolerance=TOLERANCE, terms=lambda _: 8.0)
        case_set = KernelCaseSet(PRODUCT, found, distributions=("normal",), seeds=(1,), kind=kind)
        prepared.append(case_set.prepare(case_set.full((shape,))[0]).expected["c"])
    there, here = prepared
    assert "second" in places
    for name in ("reference", "bound", "spread"):
        assert torch.equal(getattr(there, name), getattr(here, name)), name


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("error", [TypeError("no float64"), RuntimeError("no device")])
def test_without_float64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Such a device computes no expected values: the host's own results are what there is."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(type(device("second")), "allocate", refuse)
    case_set = ModelCaseSet(problem_of(tmp_path, LARGE), SETTINGS, "second")
    case_set.prepare()
    case = case_set.case(large_plan(case_set))
    assert case is not None and case.expected[0].spread is None


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("error", [torch.OutOfMemoryError("full"), RandomReference("atomic additions")])
def test_what_the_device_cannot_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Too little memory, sums in another order each time: neither makes the problem a bad one."""

    def refuse(model: Any, arguments: list[Any], **options: Any) -> tuple[Expected, ...]:
        if arguments[0].device.type == "second":
            raise error
        return expectation(model, arguments, **options)

    monkeypatch.setattr(model_cases, "expectation", refuse)
    case_set = ModelCaseSet(problem_of(tmp_path, LARGE), SETTINGS, "second")
    case_set.prepare()
    case = case_set.case(large_plan(case_set))
    assert case is not None and case.expected[0].spread is None


@pytest.mark.parametrize(
    ("extra", "outcome"), [("", None), ("if (rows > 100000) y[9] *= 1.001f;", Outcome.WRONG_VALUE)]
)
def test_declared_sizes_are_tried(
    server: LazyForkServer, tmp_path: Path, extra: str, outcome: Outcome | None
) -> None:
    """With the bound of rounding errors: an element that is off by 0.1 percent is found.

    A right candidate's weights are taken over and changed; no page is protected there.
    """
    result = tried(server, tmp_path, CANDIDATE.replace("EXTRA", extra), LARGE)
    assert not result.untried
    assert result.launched == ("ctypes",)
    assert not {"protected", "fenced"} & set(result.checks)
    assert (None if result.failure is None else result.failure.outcome) is outcome
    assert outcome is None or "declared sizes" in str(result.failure)


def test_declared_sizes_that_memory_does_not_hold(server: LazyForkServer, tmp_path: Path) -> None:
    """The verdict is that on smaller ones, and says so."""
    asks = "if len(x) > 100000: raise RuntimeError('CUDA error: out of memory')\n        y = torch"
    source = CANDIDATE.replace("EXTRA", "").replace("y = torch", asks, 1)
    result = tried(server, tmp_path, source, LARGE)
    assert result.failure is None
    assert result.untried.endswith("a call on the declared sizes needs more memory than a candidate has here")


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


@pytest.mark.usefixtures("server")
def test_inputs_are_seen_through_a_table_of_addresses() -> None:
    """As grouped kernels get them: the table lies on the device, too."""
    import second_device_native  # noqa: F401

    data_flow, allocations = DataFlow(), GuardedAllocations()
    log = LaunchLog(data_flow, allocations)
    given, result = (torch.ones(16).to("second") for _ in range(2))
    table = torch.tensor([given.data_ptr()]).to("second")
    data_flow.next_call([given.data_ptr()])
    log.next_call([given], suppress=False)
    log.around("triton", "rows", (table, result), lambda: result.add_(1))
    (launched,) = log.launches()
    assert (launched.reads, launched.copies) == ("input", False)
