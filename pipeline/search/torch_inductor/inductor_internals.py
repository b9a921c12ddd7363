"""The private interfaces of torch that code for an absent GPU needs, and the versions that they are known in.

No documented interface generates code for a GPU that is not present. Inductor asks `torch.cuda` for the
device's properties, and for little else, before its Triton code is written. So in a process of its own
`torch.cuda` answers with the target's declared limits, the inputs are fake tensors without memory, and
Inductor is stopped when the code is written. Sizes and strides of rows are symbols; those of the workload are
the hints that Inductor chooses block sizes by.

Everything private is in this module; nothing is imported from torch until it is used.
"""

import ast
import contextlib
import functools
import importlib.metadata
import importlib.util
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records.configuration.hardware import Target
from pipeline.records.errors import ToolchainError
from pipeline.records.planning.problem import Problem
from pipeline.search.torch_inductor.generated_code import GeneratedCode, TritonKernel, failed

if TYPE_CHECKING:
    import torch

SUPPORTED = ("2.11", "2.12", "2.13")
"""Versions of torch whose private interfaces this module knows."""
KERNEL_IMPORTS = """from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice
from torch._inductor.runtime.triton_helpers import math as tl_math
"""
"""What Inductor's kernels call; a source that contains them needs it, too."""


def require_supported(version: str | None = None) -> None:
    """Check the version of torch, by default the installed one; torch is not imported.

    Raises
    ------
    ToolchainError
        It is none of those whose private interfaces are known.
    """
    found = version or importlib.metadata.version("torch")
    if ".".join(found.split(".")[:2]) not in SUPPORTED:
        raise ToolchainError(
            f"search=inductor for a GPU: got torch {found}, expected {SUPPORTED[0]} to {SUPPORTED[-1]}, whose"
            f" private interfaces it uses; run pip install 'torch=={SUPPORTED[-1]}.*', or choose hardware=cpu"
        )


def capture_gpu(
    reference: Callable[[], Callable[..., Any]],
    problem: Problem,
    target: Target,
    *,
    padding: int,
    folder: Path,
) -> GeneratedCode:
    """Trace the reference and generate Triton code; an error of torch is the answer.

    Raises
    ------
    ToolchainError
        As `require_supported`.
    """
    require_supported()
    _present_target(target)
    import torch

    version = str(torch.__version__)
    modules: list[str] = []
    try:
        _stop_when_written(modules)
        _compile(reference(), _inputs(problem, padding))
    except Exception as error:
        if not modules:
            return failed("torch.compile", error, version)
    try:
        kernels = tuple(kernel for module in modules for kernel in _kernels(module, folder))
    except Exception as error:
        return failed("torch.compile's launch of its kernels", error, version)
    return GeneratedCode(modules=tuple(modules), kernels=kernels, version=version)


class _Written(Exception):
    """The code is written: nothing is to be loaded or run."""


def _present_target(target: Target) -> None:
    """Let torch.cuda answer for the target; must run before Dynamo is imported, which keeps references."""
    import torch

    limits = target.limits
    major, minor = divmod(int(target.architecture.removeprefix("sm_").rstrip("a")), 10)
    properties = types.SimpleNamespace(
        name=target.architecture,
        gcnArchName=target.architecture,  # only used for AMD, but read for every device
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
    """The method without the guard of CUDA devices, which a build of torch for CPUs lacks."""
    import torch

    wanted = memory_format or torch.contiguous_format
    if self.is_contiguous(memory_format=wanted):
        return self
    cloned: torch.Tensor = torch.ops.aten.clone.default(self, memory_format=wanted)
    return cloned


@contextlib.contextmanager
def _no_device(*_: object) -> Iterator[None]:
    yield


def _stop_when_written(modules: list[str]) -> None:
    """Let Inductor append its code to `modules` and raise, instead of loading it."""
    import torch.utils._triton
    from torch._inductor import config
    from torch._inductor.fx_passes import misc_patterns
    from torch._inductor.graph import GraphLowering
    from torch._subclasses.fake_tensor import FakeTensorMode

    config.compile_threads = 1
    config.force_disable_caches = True
    fake: Any = FakeTensorMode
    fake.avoid_device_init = property(lambda _: True)
    # One pattern needs a random generator on the device, one key of a cache its driver.
    patterns: Any = misc_patterns
    patterns._misc_patterns_init = functools.partial(_answer, None)
    keys: Any = torch.utils._triton
    keys.triton_hash_with_backend = functools.partial(_answer, "none")

    def written(text: str) -> None:
        modules.append(text)
        raise _Written

    lowering: Any = GraphLowering
    lowering.save_output_code = staticmethod(written)


def _compile(function: Callable[..., Any], inputs: "list[torch.Tensor]") -> None:
    from torch._inductor.compile_fx import compile_fx
    from torch.fx.experimental.proxy_tensor import make_fx

    compile_fx(make_fx(function, tracing_mode="real")(*inputs), inputs)


def _inputs(problem: Problem, padding: int) -> "list[torch.Tensor]":
    """Tensors without memory; equal dimensions share a symbol, as in the declaration."""
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
                row = symbol(f"stride_of_{name}", problem.shape(name)[-1] + padding)
                strides = strides_of_rows(shape, row)
                inputs.append(torch.empty_strided(shape, strides, dtype=dtype, device="cuda:0"))
            else:
                inputs.append(torch.empty(shape, dtype=dtype, device="cuda:0"))
    return inputs


def strides_of_rows(shape: list[Any], row: Any) -> list[Any]:
    """Strides of a tensor whose rows are `row` elements apart."""
    strides = [1, row]
    for size in reversed(shape[1:-1]):
        strides.append(strides[-1] * size)
    return list(reversed(strides[: len(shape)]))


def _kernels(module: str, folder: Path) -> Iterator[TritonKernel]:
    """The kernels of `name = async_compile.triton('name', '''text''', …)`, with Inductor's launch of each."""
    for node in ast.parse(module).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Attribute(attr="triton"), args=[_, ast.Constant(str(text)), *_]),
            ):
                yield _kernel(name, text, folder)


def _kernel(name: str, text: str, folder: Path) -> TritonKernel:
    from torch._inductor.runtime import triton_helpers
    from torch._inductor.runtime.triton_heuristics import GridExpr

    helpers: Any = triton_helpers
    helpers.set_driver_to_gpu = functools.partial(_answer, None)
    path = Path(tempfile.mkdtemp(dir=folder), f"{name}.py")  # Triton reads the text of its functions
    path.write_text(text)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    tuner: Any = getattr(loaded, name)
    first = tuner.configs[0]
    grid = GridExpr.from_meta(tuner.inductor_meta, first)
    return TritonKernel(
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
