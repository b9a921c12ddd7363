"""Inductor's Triton code for a GPU that need not be here."""

import subprocess
import sys

import pytest

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Tensor
from pipeline.records.planning.problem import Problem
from pipeline.records.record import from_json, to_json
from pipeline.search.torch_inductor.gpu_capture import Captured, GpuCaptureRequest, _strides
from pipeline.search.torch_inductor.triton_source import wrap_triton

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


def captured(reference: str) -> Captured:
    """As generate calls it."""
    request = GpuCaptureRequest(reference=reference, problem=PROBLEM, target=H200)
    command = [sys.executable, "-m", "pipeline.search.torch_inductor.gpu_capture"]
    ended = subprocess.run(command, input=to_json(request), capture_output=True, check=True, timeout=250)
    return from_json(ended.stdout, Captured)


def test_rows_apart() -> None:
    """Only the distance of rows is free; what is outside of them follows from it."""
    assert _strides([2, 3, 4], 10) == [30, 10, 1]
    assert _strides([3, 4], 10) == [10, 1]
    assert _strides([4], 10) == [1]


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
