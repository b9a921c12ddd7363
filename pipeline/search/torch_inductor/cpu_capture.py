"""Runs in a process of its own: compile a reference with torch.compile and write down what it generated.

In: a request as JSON on stdin. Out: a Capture as JSON on stdout. Shapes and strides of rows are symbols in
the generated code, so that it is right beyond the workload's own shape.

    python -m pipeline.search.torch_inductor.cpu_capture < REQUEST.json
"""

import functools
import importlib
import sys
import tempfile
from typing import TYPE_CHECKING

from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record, from_json, to_json

if TYPE_CHECKING:
    import torch

PADDING = 8  # elements by which rows of a row-strided input are longer than they say


class CpuCaptureRequest(Record, frozen=True, kw_only=True):
    """What is compiled."""

    reference: str
    problem: Problem


class Capture(Record, frozen=True, kw_only=True):
    """What came of it."""

    code: tuple[str, ...] = ()
    """One Python module of Inductor's for each graph."""
    capability: str = ""
    """Macro of the vector instructions that it was generated for: `CPU_CAPABILITY_AVX512`."""
    version: str = ""
    """Of torch."""
    problem: str | None = None
    """Why there is none."""


def capture(request: CpuCaptureRequest) -> Capture:
    """Compile; whatever torch raises is the answer."""
    import torch
    from torch._inductor import config
    from torch._inductor.cpu_vec_isa import pick_vec_isa
    from torch._inductor.utils import run_and_get_code

    config.compile_threads = 1
    config.force_disable_caches = True
    config.cpp.vec_isa_ok = True
    module, _, name = request.reference.partition(":")
    reference = getattr(importlib.import_module(module), name)
    problem = request.problem
    # Bound, not passed: numbers that are the kernel's own are constants of the code, as attributes are.
    function = functools.partial(reference, **problem.scalars, **problem.attributes)
    inputs = [_tensor(problem, each) for each in problem.names("input")]
    try:
        _, code = run_and_get_code(torch.compile(function, dynamic=True), *inputs)
    except Exception as error:
        line = " ".join(str(error).split())
        return Capture(problem=f"torch.compile: {type(error).__name__}: {line[:300]}")
    macros = pick_vec_isa().build_macro()
    capability = next((each for each in macros if each.startswith("CPU_CAPABILITY")), "")
    return Capture(code=tuple(code), capability=capability, version=str(torch.__version__))


def _tensor(problem: Problem, name: str) -> "torch.Tensor":
    import torch

    declared, shape = problem.tensors[name], problem.shape(name)
    dtype = getattr(torch, declared.dtype)
    if not dtype.is_floating_point:
        return torch.zeros(shape, dtype=dtype)
    if declared.layout == "row_strided":
        return torch.rand(*shape[:-1], shape[-1] + PADDING).to(dtype)[..., : shape[-1]]
    return torch.rand(shape).to(dtype)


def main() -> int:
    """Command line; returns the exit code."""
    request = from_json(sys.stdin.buffer.read(), CpuCaptureRequest)
    with tempfile.TemporaryDirectory(prefix="kernelmill-inductor-") as folder:
        import os

        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        sys.stdout.buffer.write(to_json(capture(request)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
