"""Capture what torch.compile generates for a reference, in a process of its own.

In: a CaptureRequest as JSON on stdin. Out: a GeneratedCode as JSON on stdout. Sizes and strides of rows are
symbols in the generated code, so that it is right for other shapes than the workload's.

For a CPU only documented interfaces are used: `torch.compile` with `TORCH_COMPILE_DEBUG`. For a GPU, which
need not be present, see `inductor_internals`.

    python -m pipeline.search.torch_inductor.capture < REQUEST.json
"""

import contextlib
import functools
import importlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.configuration.hardware import Target
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record, from_json, to_json
from pipeline.search.torch_inductor.generated_code import GeneratedCode, failed

if TYPE_CHECKING:
    import torch

PADDING = 8  # elements between the rows of a row-strided input


class CaptureRequest(Record, frozen=True, kw_only=True):
    """What is compiled, and for which device."""

    reference: str
    """`module:function`."""
    problem: Problem
    target: Target


def capture(request: CaptureRequest, folder: Path) -> GeneratedCode:
    """Generate code; an error of torch is the answer. Debugging output and caches are in `folder`."""
    from pipeline.search.torch_inductor import inductor_internals

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    if executes_on_host(request.target.kind):
        return capture_cpu(request, folder)
    return inductor_internals.capture_gpu(
        lambda: _reference(request), request.problem, request.target, padding=PADDING, folder=folder
    )


def capture_cpu(request: CaptureRequest, folder: Path) -> GeneratedCode:
    """Compile for this machine's CPU, and read what torch.compile writes for debugging."""
    os.environ["TORCH_COMPILE_DEBUG"] = "1"
    os.environ["TORCH_COMPILE_DEBUG_DIR"] = str(folder)
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"  # skips compiling a test program
    import torch

    version = str(torch.__version__)
    inputs = [_tensor(request.problem, name) for name in request.problem.names("input")]
    try:
        torch.compile(_reference(request), dynamic=True)(*inputs)
    except Exception as error:
        return failed("torch.compile", error, version)
    found = sorted(folder.glob("torch_compile_debug/*/torchinductor/*/output_code.py"))
    if not found:
        return GeneratedCode(problem="torch.compile generated no code", version=version)
    return GeneratedCode(
        modules=tuple(path.read_text() for path in found),
        capability=cpu_macro(torch.backends.cpu.get_cpu_capability()),
        version=version,
    )


def cpu_macro(capability: str) -> str:
    """The macro that selects the vector instructions of ATen's headers; empty if the CPU has none of them."""
    known = next((name for name in ("AVX512", "AVX2") if capability.startswith(name)), None)
    return f"CPU_CAPABILITY_{known}" if known else ""


def _reference(request: CaptureRequest) -> Callable[..., Any]:
    """The reference with scalars and attributes bound: they are constants of the code."""
    module, _, name = request.reference.partition(":")
    reference = getattr(importlib.import_module(module), name)
    return functools.partial(reference, **request.problem.scalars, **request.problem.attributes)


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
    request = from_json(sys.stdin.buffer.read(), CaptureRequest)
    with tempfile.TemporaryDirectory(prefix="kernelmill-inductor-") as folder:
        tempfile.tempdir = folder
        with contextlib.redirect_stdout(sys.stderr):
            found = capture(request, Path(folder))
    sys.stdout.buffer.write(to_json(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
