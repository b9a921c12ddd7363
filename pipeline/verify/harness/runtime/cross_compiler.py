"""Compiles a candidate's kernels for an absent device. In: `CompileRequest`. Out: `CompileReply`.

Extensions in a device's language are compiled when the candidate would build them, and not called.

Its own host code runs on tensors without memory, in a process whose Triton compiles. Kernels that it does not
reach so, because they are behind an operator of its own or a value that host code needs, are compiled for the
launches that the interpreter made. What stays uncompiled is not held against it.
"""

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
import triton.testing
from torch.utils import cpp_extension

from pipeline.backends.backend import CompiledExtension, LaunchError
from pipeline.backends.cpp.extension_builds import ExtensionSources, divert_builds
from pipeline.backends.registry import backend, candidate_backends
from pipeline.backends.triton.error_summary import reason_of
from pipeline.backends.triton.offline_compilation import facts_of, offline_compiler, present_tensor
from pipeline.backends.triton.triton_internals import static_assertion
from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.compiled import StaticFacts
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.models.candidate_import import import_candidate
from pipeline.sandbox.processes.channel import Channel
from pipeline.verify.harness.buffers import Slot
from pipeline.verify.harness.messages import (
    CompiledKernel,
    CompileReply,
    CompileRequest,
    InterpretedLaunch,
)
from pipeline.verify.harness.runtime.decoding import decode, form_of
from pipeline.verify.harness.runtime.fake_cuda import FakeStream, stand_in_for_cuda

TARGET = "pipeline.verify.harness.runtime.cross_compiler:serve"
PRELOAD = (
    "numpy",
    "torch",
    "triton",
    "pipeline.backends.triton.compiler_warm_up",
    "pipeline.verify.harness.runtime.cross_compiler",
)
"""For a fork server without TRITON_INTERPRET."""

_COMPILER = ("/triton/compiler/", "/triton/backends/")
_LOG = "log.txt"
_DEVICE_SOURCE = ".cu"


class _NotNeeded(Exception):
    """The function has nothing to do with kernels that are compiled here."""


class _Diverted(Exception):
    """An extension was compiled for the target, and cannot be loaded."""


class _Unloaded:
    """In place of the module of such an extension."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_arguments: Any, **_keywords: Any) -> None:
            raise _NotNeeded(f"it calls {name} of an extension")

        return refuse


def serve(channel: Channel) -> None:
    """Answer one request."""
    send = channel.send
    request: CompileRequest = channel.receive(CompileRequest)
    scratch = Path.cwd()
    confine(scratch)
    stand_in_for_cuda(request.target.limits)
    send(assemble(request, scratch))


def assemble(request: CompileRequest, scratch: Path) -> CompileReply:
    """Compile in this process, which must not interpret; `scratch` is an empty folder."""
    log = scratch / _LOG
    log.touch()
    failure, incomplete, refused_kernel = None, "", ""
    kernels_made: list[Any] = []
    extensions: list[CompiledExtension] = []
    with offline_compiler(request.target, log) as recorder:
        if request.every_configuration:
            triton.runtime.driver.active.get_benchmarker = lambda: _run_once
        try:
            with (
                _diverting_builds(request.target, extensions),
                mock.patch.object(torch, "compile", _as_it_is),
                mock.patch.object(triton.JITFunction, "__init__", _remembering(kernels_made)),
                mock.patch.object(torch.cuda, "current_stream", lambda *_: FakeStream()),
                mock.patch.object(
                    triton.testing, "do_bench", _run_once if request.every_configuration else _skip
                ),
            ):
                _call(request, scratch)
        except triton.OutOfResources as error:
            reason = f"{error.name}: got {error.required}, {request.target.architecture} has {error.limit}"
            failure = Failure(outcome=Outcome.LAUNCH_ERROR, reason=reason)
        except LaunchError as error:
            failure = Failure(outcome=Outcome.LAUNCH_ERROR, reason=str(error))
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            reason = reason_of(error, log.read_text(errors="replace"))
            if _is_from_compiler(error):
                failure = Failure(outcome=Outcome.COMPILE_ERROR, reason=reason)
                refused_kernel = _kernel_of(error)
            elif not (isinstance(error, _NotNeeded) and extensions):
                incomplete = reason
        if request.interpreted:
            reached = set() if incomplete else {kernel.name for kernel in recorder.kernels()}
            calls = [each for each in request.interpreted if each.name not in reached]
            found, unreached = _compile_launches(calls, kernels_made, log)
            incomplete = (incomplete or f"not reached: {', '.join(unreached)}") if unreached else ""
            # Host code that read memory may have asked for sizes that no call has.
            if refused_kernel in {each.name for each in calls} - set(unreached):
                failure = None
            failure = found or failure
        kernels = [
            _described(kernel.name, facts_of((kernel,), request.target)) for kernel in recorder.kernels()
        ]
    refused = next((each.failure for each in extensions if each.failure is not None), None)
    for extension in extensions:
        kernels += [_described(name, facts) for name, facts in extension.kernels.items()]
        incomplete = incomplete or extension.incomplete
    if failure is None and refused is None and not kernels:
        incomplete = incomplete or "no kernel was launched"
    return CompileReply(
        kernels=tuple(kernels),
        failure=failure or refused,
        of_extension=refused is not None,
        incomplete=incomplete,
    )


def _call(request: CompileRequest, scratch: Path) -> None:
    """Construct and call, as on the device."""
    tensors = {slot.name: _present(slot) for slot in request.tensors}
    module = import_candidate(Path(request.source), scratch)
    model = module.ModelNew(*(decode(value, tensors) for value in request.initial))
    if isinstance(model, torch.nn.Module):
        _move(model)
    if not request.gradients:
        with torch.no_grad():
            model(*(decode(value, tensors) for value in request.arguments))
        return
    given = {name: _leaf(tensor) for name, tensor in tensors.items()}
    _, results = form_of(model(*(decode(value, given) for value in request.arguments)))
    differentiable = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
    if differentiable:
        torch.autograd.backward(differentiable, [torch.empty_like(each) for each in differentiable])


def _compile_launches(
    calls: Sequence[InterpretedLaunch], kernels: Sequence[Any], log: Path
) -> tuple[Failure | None, tuple[str, ...]]:
    """Compile what the interpreter launched: the compiler's first failure, and names that were not reached.

    Only what no target takes is a failure: an autotuner may have other configurations.
    """
    unreached: dict[str, None] = {}
    for call in calls:
        found = [each for each in kernels if _is_of(each, call)]
        if call.arguments is None or not found:
            unreached[call.name] = None
            continue
        arguments = {name: _argument(value) for name, value in call.arguments.items()}
        for kernel in found:
            try:
                kernel.run(grid=(1, 1, 1), warmup=False, **arguments)
            except (Exception, SystemExit) as error:
                traceback.print_exc()
                if _is_from_compiler(error) and not isinstance(error, _OF_CONFIGURATIONS):
                    reason = reason_of(error, log.read_text(errors="replace"))
                    return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason), ()
                unreached[call.name] = None
    return None, tuple(unreached)


def _kernel_of(error: BaseException) -> str:
    """Whose launch raised it; empty where it was none."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        launched = frame.f_locals.get("self")
        if isinstance(launched, triton.JITFunction):
            return str(launched.fn.__name__)
    return ""


def _is_of(kernel: Any, call: InterpretedLaunch) -> bool:
    code = kernel.fn.__code__
    return (kernel.fn.__name__, Path(code.co_filename).name) == (call.name, call.file)


def _argument(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "type" in value:
        return triton.language.dtype(value["type"])
    return present_tensor((_ELEMENTS,), getattr(torch, value["tensor"]))


_ELEMENTS = 16
_OF_CONFIGURATIONS = (triton.OutOfResources, static_assertion())
"""For which an autotuner takes another configuration."""


def _remembering(made: list[Any]) -> Callable[..., None]:
    """The constructor of Triton's kernels, which keeps them."""
    initialize = triton.JITFunction.__init__

    @functools.wraps(initialize)
    def initialized(self: Any, *arguments: Any, **keywords: Any) -> None:
        initialize(self, *arguments, **keywords)
        made.append(self)

    return initialized


def _as_it_is(model: Any = None, **_options: Any) -> Any:
    """In place of `torch.compile`, also as a decorator with options."""
    return _as_it_is if model is None else model


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_(tensor.is_floating_point())


def _present(slot: Slot) -> torch.Tensor:
    dense = present_tensor((max(slot.span, 0),), getattr(torch, slot.dtype))
    return dense.as_strided(slot.shape, slot.strides)


def _move(model: torch.nn.Module) -> None:
    """Weights to the device, as `model.cuda()` would; also those that are plain attributes."""
    for module in model.modules():
        groups: tuple[dict[str, Any], ...] = (module._parameters, module._buffers, vars(module))
        for group in groups:
            for name, value in list(group.items()):
                if type(value) in (torch.Tensor, torch.nn.Parameter):
                    present = present_tensor(tuple(value.shape), value.dtype)
                    group[name] = present.requires_grad_(value.requires_grad)


@contextlib.contextmanager
def _diverting_builds(target: Target, made: list[CompiledExtension]) -> Iterator[None]:
    """Compile extensions for the target where a backend can; nothing of them can be called."""
    backends = map(backend, candidate_backends())
    compiler = next((found for each in backends if (found := each.extension_compiler(target))), None)

    def take(extension: ExtensionSources) -> None:
        if compiler is None or not any(source.suffix == _DEVICE_SOURCE for source in extension.sources):
            raise _NotNeeded("it builds an extension")
        made.append(compiler.compile(extension))
        raise _Diverted

    def calling(build: Any) -> Any:
        @functools.wraps(build)
        def built(*arguments: Any, **keywords: Any) -> Any:
            with contextlib.suppress(_Diverted):
                build(*arguments, **keywords)
                raise _NotNeeded("it builds an extension")
            return _Unloaded()

        return built

    divert_builds(take)
    with contextlib.ExitStack() as stack:
        for name in ("load", "load_inline"):
            replacement = calling(getattr(cpp_extension, name))
            stack.enter_context(mock.patch.object(cpp_extension, name, replacement))
        yield


def _run_once(call: Any, *_arguments: Any, quantiles: Any = None, **_keywords: Any) -> Any:
    """A benchmark that measures nothing: what does not fit raises, and the autotuner takes another one."""
    call()
    return _skip(call, quantiles=quantiles)


def _skip(_call: Any, *_arguments: Any, quantiles: Any = None, **_keywords: Any) -> Any:
    """A benchmark in which all configurations are equal: the first one is taken, and compiled alone."""
    return 1.0 if quantiles is None else [1.0 for _ in quantiles]


def _is_from_compiler(error: BaseException) -> bool:
    """Whether Triton's compiler raised it, rather than host code or PyTorch."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(place in frame.filename for frame in frames for place in _COMPILER)


def _described(name: str, facts: StaticFacts) -> CompiledKernel:
    return CompiledKernel(
        name=name, registers=facts.registers, spills=facts.spills, shared_memory=facts.shared_memory
    )
