"""Code that Inductor generates for this CPU and for an absent GPU; versions of torch that are not known."""

import ast
import subprocess
import sys

import msgspec
import pytest

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ToolchainError
from pipeline.records.planning.problem import Problem
from pipeline.records.record import from_json, to_json
from pipeline.records.search.written_source import Unfit
from pipeline.search.spaces.search_space import space_of
from pipeline.search.strategies.inductor import propose
from pipeline.search.strategy import Budget, WriterContext
from pipeline.search.torch_inductor.capture import CaptureRequest, cpu_macro
from pipeline.search.torch_inductor.cpp_source import wrap_cpp
from pipeline.search.torch_inductor.generated_code import GeneratedCode
from pipeline.search.torch_inductor.inductor_internals import SUPPORTED, require_supported, strides_of_rows
from pipeline.search.torch_inductor.triton_source import wrap_triton
from tests.paths import ROOT
from tests.stages.test_generate import SPEC

BUDGET = Budget(round=0, rounds=1, variants=None, seed=0)
H200 = Target(
    kind="cuda",
    architecture="sm_90",
    limits={
        "sm_count": 132,
        "registers_per_sm": 65536,
        "threads_per_sm": 2048,
        "threads_per_block": 1024,
        "shared_memory_per_block": 232448,
        "warp_size": 32,
    },
)
PROBLEM = Problem(
    kernel="rms_norm",
    dimensions={"rows": 16, "cols": 1024},
    tensors={
        "x": Tensor(role="input", shape=("rows", "cols"), dtype="float16", layout="row_strided"),
        "weight": Tensor(role="input", shape=("cols",), dtype="float16"),
        "y": Tensor(role="output", shape=("rows", "cols"), dtype="float16"),
    },
    scalars={"eps": 1e-6},
    attributes={},
    element="float16",
)


def captured(reference: str, problem: Problem = PROBLEM, target: Target = H200) -> GeneratedCode:
    """As generate calls it."""
    request = CaptureRequest(reference=reference, problem=problem, target=target)
    command = [sys.executable, "-m", "pipeline.search.torch_inductor.capture"]
    ended = subprocess.run(command, input=to_json(request), capture_output=True, check=True, timeout=250)
    return from_json(ended.stdout, GeneratedCode)


def test_rows_apart() -> None:
    """Only the distance of rows is free; what is outside of them follows from it."""
    assert strides_of_rows([2, 3, 4], 10) == [30, 10, 1]
    assert strides_of_rows([3, 4], 10) == [10, 1]
    assert strides_of_rows([4], 10) == [1]


@pytest.mark.slow
def test_kernels_of_an_absent_device() -> None:
    """Symbolic sizes and strides, the target's properties, a grid, block sizes: a source that is whole."""
    pytest.importorskip("triton")
    found = captured("kernels.rms_norm.reference:reference")
    assert found.problem is None
    assert "multi_processor_count=132, cc=90" in found.modules[0]
    (kernel,) = found.kernels
    assert {"xnumel", "r0_numel", "ks0"} <= set(kernel.parameters)
    assert {"XBLOCK", "R0_BLOCK", "num_warps", "num_stages"} == set(kernel.options)
    text = wrap_triton(found, PROBLEM, "launch")
    compile(text, "generated", "exec")
    assert "def launch(*, x, weight, y, **unused):" in text


@pytest.mark.slow
def test_a_reference_that_cannot_be_traced() -> None:
    """What torch says is the reason; nothing is raised."""
    assert "torch.compile: AttributeError" in (captured("kernels.rms_norm.reference:nothing").problem or "")


@pytest.mark.slow
def test_code_for_this_cpu() -> None:
    """Through documented interfaces only: kernels and wrapper of one graph, which become one source."""
    tensors = {
        name: msgspec.structs.replace(tensor, dtype="float32") for name, tensor in PROBLEM.tensors.items()
    }
    problem = msgspec.structs.replace(PROBLEM, tensors=tensors, element="float32")
    cpu = Target(kind="cpu", architecture="x86-64-v3", limits={})
    found = captured("kernels.rms_norm.reference:reference", problem, cpu)
    assert (found.problem, len(found.modules)) == (None, 1)
    assert 'extern "C" int rms_norm(' in wrap_cpp(found, problem, "rms_norm")


def test_macros_of_the_vector_instructions() -> None:
    """As ATen's headers name them; other instruction sets have no macro of their own."""
    assert cpu_macro("AVX512_VNNI") == "CPU_CAPABILITY_AVX512"
    assert cpu_macro("AVX2") == "CPU_CAPABILITY_AVX2"
    assert cpu_macro("DEFAULT") == ""


def test_versions_of_torch() -> None:
    """Private interfaces are used in known versions only; the error names the version and what to do."""
    for version in SUPPORTED:
        require_supported(f"{version}.1+cpu")
    with pytest.raises(
        ToolchainError, match=r"got torch 9\.1\.0, expected .* run pip install 'torch==.*hardware=cpu"
    ):
        require_supported("9.1.0")


def test_a_gpu_needs_a_known_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strategy stops before anything is compiled; on the CPU it goes on without private interfaces."""
    started: list[str] = []

    def run(*_: object, **__: object) -> "subprocess.CompletedProcess[bytes]":
        started.append("capture")
        return subprocess.CompletedProcess([], 0, stdout=to_json(GeneratedCode(problem="nothing")))

    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.1.0")
    monkeypatch.setattr("subprocess.run", run)
    given = inductor_task("triton", H200)
    with pytest.raises(ToolchainError, match="got torch 9.1.0"):
        propose(space_of(given.spec), [], BUDGET, given)
    assert started == []
    given = inductor_task("cpp", Target(kind="cpu", architecture="x86-64-v3", limits={}))
    _, refused = propose(space_of(given.spec), [], BUDGET, given)
    assert isinstance(refused, Unfit) and refused.failure.reason == "nothing"
    assert started == ["capture"]


def inductor_task(backend: str, target: Target) -> WriterContext:
    """A task of the strategy with one implementation."""
    implementation = msgspec.structs.replace(SPEC.implementations["cpp"], backend=backend)
    spec = msgspec.structs.replace(
        SPEC,
        implementations={"cpp": implementation},
        search=Search(name="", description="", strategy="inductor"),
        reference="kernels.rms_norm.reference:reference",
        target=target,
    )
    return WriterContext(spec=spec, repository=".", store=".")


def test_private_interfaces_are_in_one_module() -> None:
    """Everywhere else in the room, libraries are used as documented."""
    room = ROOT / "pipeline" / "search"
    found = {
        path.name
        for path in room.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
        )
        if "._" in str(name)
    }
    assert found == {"inductor_internals.py"}
