"""Runs in a process of its own: what torch.compile generates for a GPU that need not be here.

In: a request as JSON on stdin. Out: a Captured as JSON on stdout. Inductor asks torch.cuda for the device's
properties and for little else before it has written its Triton code, so in this process torch.cuda answers
with the target's declared limits, tensors are fake ones (no memory), and Inductor is stopped when the code is
written. Sizes and strides of rows are symbols, as in `inductor_capture`; the workload's are the hints by
which Inductor chooses block sizes.

    python -m pipeline.search.torch_inductor.gpu_capture < REQUEST.json
"""

import ast
import contextlib
import functools
import importlib
import importlib.util
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.configuration.hardware import Target
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record, from_json, to_json
from pipeline.search.torch_inductor.cpu_capture import PADDING

if TYPE_CHECKING:
    import torch


class GpuCaptureRequest(Record, frozen=True, kw_only=True):
    """What is compiled, and for which device."""

    reference: str
    problem: Problem
    target: Target


class CapturedKernel(Record, frozen=True, kw_only=True):
    """One Triton kernel, and how Inductor launches it."""

    name: str
    text: str
    """Its function."""
    parameters: tuple[str, ...]
    """Those that a call passes; block sizes are not among them."""
    options: dict[str, int]
    """Block sizes, `num_warps` and `num_stages` of the first configuration that Inductor would try."""
    configurations: int
    """How many it would try on a device."""
    before: tuple[str, ...]
    """Statements that the grid needs."""
    grid: tuple[str, ...]
    """Formulas over the parameters."""


class Captured(Record, frozen=True, kw_only=True):
    """What came of it."""

    modules: tuple[str, ...] = ()
    """One Python module of Inductor's for each graph."""
    kernels: tuple[CapturedKernel, ...] = ()
    version: str = ""
    """Of torch."""
    problem: str | None = None
    """Why there is none."""


class _Written(Exception):
    """The code is there: nothing is to be loaded or run."""


def capture(request: GpuCaptureRequest) -> Captured:
    """Trace and generate; whatever torch raises is the answer."""
    _pretend(request.target)
    import torch

    modules: list[str] = []
    try:
        _generate(request, modules)
    except Exception as error:
        if not modules:
            line = " ".join(str(error).split())
            return Captured(problem=f"torch.compile: {type(error).__name__}: {line[:300]}")
    version = str(torch.__version__)
    try:
        kernels = tuple(kernel for module in modules for kernel in _kernels(module))
    except Exception as error:
        line = " ".join(str(error).split())
        reason = f"torch.compile's launch of its kernels: {type(error).__name__}: {line[:300]}"
        return Captured(problem=reason, version=version)
    return Captured(modules=tuple(modules), kernels=kernels, version=version)


def _pretend(target: Target) -> None:
    """torch.cuda answers for the target; before Dynamo is imported, which keeps some of these functions."""
    import torch

    limits = target.limits
    major, minor = divmod(int(target.architecture.removeprefix("sm_").rstrip("a")), 10)
    properties = types.SimpleNamespace(
        name=target.architecture,
        gcnArchName=target.architecture,  # read for AMD only, but asked of every device
        major=major,
        minor=minor,
        multi_processor_count=limits["sm_count"],
        regs_per_multiprocessor=limits["registers_per_sm"],
        max_threads_per_multi_processor=limits["threads_per_sm"],
        max_threads_per_block=limits["threads_per_block"],
        shared_memory_per_block_optin=limits["shared_memory_per_block"],
        warp_size=limits["warp_size"],
    )
    cuda: Any = torch.cuda
    answers = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "get_device_properties": properties, "get_device_capability": (major, minor),
        "get_device_name": target.architecture, "set_device": None, "synchronize": None, "_lazy_init": None,
        "_exchange_device": 0, "_maybe_exchange_device": 0,
        "get_rng_state": torch.empty(0, dtype=torch.uint8), "set_rng_state": None,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(cuda, name, functools.partial(_answer, answer))
    cuda.device = cuda._DeviceGuard = _no_device
    tensor: Any = torch.Tensor
    tensor.contiguous = _contiguous


def _answer(answer: object, *_: object, **__: object) -> object:
    return answer


def _contiguous(self: "torch.Tensor", memory_format: "torch.memory_format | None" = None) -> "torch.Tensor":
    """What the method does; its own form asks for a guard of CUDA devices, which a build for CPUs has not."""
    import torch

    wanted = memory_format or torch.contiguous_format
    if self.is_contiguous(memory_format=wanted):
        return self
    cloned: torch.Tensor = torch.ops.aten.clone.default(self, memory_format=wanted)
    return cloned


@contextlib.contextmanager
def _no_device(*_: object) -> Iterator[None]:
    yield


def _generate(request: GpuCaptureRequest, modules: list[str]) -> None:
    """Fills `modules`, then raises."""
    import torch.utils._triton
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.fx_passes import misc_patterns
    from torch._inductor.graph import GraphLowering
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    config.compile_threads = 1
    config.force_disable_caches = True
    fake: Any = FakeTensorMode
    fake.avoid_device_init = property(lambda _: True)
    # Neither a random generator on the device nor a driver is here: one pattern, and one key of a cache.
    patterns: Any = misc_patterns
    patterns._misc_patterns_init = functools.partial(_answer, None)
    keys: Any = torch.utils._triton
    keys.triton_hash_with_backend = functools.partial(_answer, "none")

    def written(text: str) -> None:
        modules.append(text)
        raise _Written

    lowering: Any = GraphLowering
    lowering.save_output_code = staticmethod(written)
    problem = request.problem
    module, _, name = request.reference.partition(":")
    reference = getattr(importlib.import_module(module), name)
    function = functools.partial(reference, **problem.scalars, **problem.attributes)
    inputs = _inputs(problem)
    compile_fx(make_fx(function, tracing_mode="real")(*inputs), inputs)


def _inputs(problem: Problem) -> "list[torch.Tensor]":
    """Without memory; equal dimensions share a symbol, as in the declaration."""
    import torch
    from torch._dynamo.source import ConstantSource
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

    environment = ShapeEnv()

    def symbol(name: str, hint: int) -> Any:
        made = environment.create_symbol(
            hint, ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None
        )
        return environment.create_symintnode(made, hint=hint)

    sizes = {name: symbol(name, size) for name, size in problem.dimensions.items()}
    inputs = []
    with FakeTensorMode(shape_env=environment):
        for name in problem.names("input"):
            declared = problem.tensors[name]
            shape, dtype = [sizes[axis] for axis in declared.shape], getattr(torch, declared.dtype)
            if declared.layout == "row_strided":
                row = symbol(f"stride_of_{name}", problem.shape(name)[-1] + PADDING)
                strides = _strides(shape, row)
                inputs.append(torch.empty_strided(shape, strides, dtype=dtype, device="cuda:0"))
            else:
                inputs.append(torch.empty(shape, dtype=dtype, device="cuda:0"))
    return inputs


def _strides(shape: list[Any], row: Any) -> list[Any]:
    """Of a tensor whose rows are `row` elements apart."""
    strides = [1, row]
    for size in reversed(shape[1:-1]):
        strides.append(strides[-1] * size)
    return list(reversed(strides[: len(shape)]))


def _kernels(module: str) -> Iterator[CapturedKernel]:
    """Of `name = async_compile.triton('name', '''text''', …)`: each asked how it would be launched."""
    for node in ast.parse(module).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Attribute(attr="triton"), args=[_, ast.Constant(str(text)), *_]),
            ):
                yield _kernel(name, text)


def _kernel(name: str, text: str) -> CapturedKernel:
    from torch._inductor.runtime import triton_helpers
    from torch._inductor.runtime.triton_heuristics import GridExpr

    helpers: Any = triton_helpers
    helpers.set_driver_to_gpu = functools.partial(_answer, None)
    folder = tempfile.mkdtemp()  # in the process's own: Triton reads the text of its functions
    path = Path(folder, f"{name}.py")
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    tuner: Any = getattr(loaded, name)
    first = tuner.configs[0]
    grid = GridExpr.from_meta(tuner.inductor_meta, first)
    return CapturedKernel(
        name=name,
        text=_function(text, name),
        parameters=tuple(each for each in tuner.fn.arg_names if each not in first.kwargs),
        options={**first.kwargs, "num_warps": first.num_warps, "num_stages": first.num_stages},
        configurations=len(tuner.configs),
        before=tuple(grid.prefix),
        grid=tuple(str(each) for each in (grid.x_grid, grid.y_grid, grid.z_grid)),
    )


def _function(text: str, name: str) -> str:
    found = next(
        node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return "\n".join(["@triton.jit", *text.splitlines()[found.lineno - 1 : found.end_lineno]])


def main() -> int:
    """Command line; returns the exit code."""
    request = from_json(sys.stdin.buffer.read(), GpuCaptureRequest)
    with tempfile.TemporaryDirectory(prefix="kernelmill-inductor-") as folder:
        import os

        tempfile.tempdir = folder
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        sys.stdout.buffer.write(to_json(capture(request)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
