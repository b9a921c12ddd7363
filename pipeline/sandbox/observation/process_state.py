"""Did a candidate change what it shares with its harness? Compare this process with what it was before.

In: a `snapshot` taken before the candidate's code ran. Out: one line per function that was replaced, removed
or given other code in Python, PyTorch, Triton or this package, and which global settings have changed. What
was added is fine: libraries import lazily. The judge never runs in this process, so nothing of this reaches
it; but a candidate that does this is not what it seems.

One file: `private` makes a copy of a module that no other code can reach, and what it imported from a second
module of ours could be replaced there.
"""

import ctypes
import gc
import os
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import Any, NamedTuple

import torch

from pipeline.records.record import Record
from pipeline.sandbox.torch_internals import dispatch_modes, function_modes

MODULES = (
    "builtins",
    "_thread",
    "copy",
    "ctypes",
    "gc",
    "inspect",
    "io",
    "math",
    "mmap",
    "multiprocessing.connection",
    "os",
    "posix",
    "random",
    "resource",
    "select",
    "signal",
    "socket",
    "struct",
    "subprocess",
    "sys",
    "threading",
    "time",
    "numpy",
    "numpy.random",
    "numpy.testing",
    "msgspec",
    "msgspec.json",
    "msgspec.msgpack",
    "torch",
    "torch._C._linalg",
    "torch._C._nn",
    "torch._C._fft",
    "torch._C._special",
    "torch.autograd",
    "torch.autograd.grad_mode",
    "torch.autograd.gradcheck",
    "torch.cuda",
    "torch.cuda.random",
    "torch.cuda.streams",
    "torch.fft",
    "torch.functional",
    "torch.library",
    "torch.linalg",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.random",
    "torch.special",
    "torch.testing",
    "torch.utils.benchmark",
    "torch.utils.cpp_extension",
    "torch.utils.dlpack",
    "triton",
    "triton.compiler",
    "triton.language",
    "triton.language.core",
    "triton.language.math",
    "triton.language.standard",
    "triton.runtime",
    "triton.runtime.autotuner",
    "triton.runtime.driver",
    "triton.runtime.jit",
    "triton.testing",
)
"""Modules whose functions stay what they are."""

CLASSES = (
    "torch.Tensor",
    "torch._C.TensorBase",
    "torch.Generator",
    "torch.autograd.Function",
    "torch.cuda.Event",
    "torch.cuda.Stream",
    "torch.nn.modules.module.Module",
    "torch.utils._python_dispatch.TorchDispatchMode",
    "threading.Thread",
    "ctypes.CDLL",
    "multiprocessing.connection.Connection",
    "multiprocessing.connection._ConnectionBase",
    "subprocess.Popen",
    "triton.language.core.tensor",
    "triton.runtime.autotuner.Autotuner",
    "triton.runtime.autotuner.Heuristics",
    "triton.runtime.interpreter.GridExecutor",
    "triton.runtime.interpreter.InterpretedFunction",
    "triton.runtime.jit.JITFunction",
    "triton.runtime.jit.KernelInterface",
)
"""Classes whose methods stay what they are."""

CLASSES_OF = ("torch.nn",)
"""Modules all of whose classes are watched."""

_LAZY = "__annotations__"  # made when first asked for
_CODE = (attrgetter("__code__"), attrgetter("__defaults__"), attrgetter("__kwdefaults__"))
_referents = gc.get_referents
_HOLDERS = (types.FunctionType, property, staticmethod, classmethod)
"""What may have a function's code in it."""
_ABSENT = object()
_DESCRIPTORS = (staticmethod, classmethod, property, types.ModuleType)
# Put functions of their own into triton.language while a kernel is interpreted.
_INTERPRETER = (
    "triton/runtime/interpreter.py",
    "pipeline/backends/triton/interpretation/interpreted_syntax.py",
)
_WRAPPERS = ("torch/_compile.py", "torch/_dynamo/mutation_guard.py")  # wrap some functions when first needed
# Dispatch keys under which an operator computes for a caller; PyTorch's own modules register others.
_COMPUTING_KEYS = ("CPU", "CUDA", "Autograd", "Composite")


class ProcessState(Record, frozen=True, kw_only=True, eq=False):
    """What was there: holds the objects themselves, so that no other one takes their identity."""

    modules: Mapping[str, Any]
    names: Mapping[str, tuple[Any, Mapping[str, Any]]]
    """Label of a module or class -> itself and its attributes."""
    inherited: Mapping[str, tuple[frozenset[str], ...]]
    """Label -> what a class has from its bases, a module from Python, and an added name would hide."""
    functions: tuple[tuple[str, ...], tuple[types.FunctionType, ...]]
    """Labels of functions, and themselves,"""
    code: tuple[tuple[Any, ...], ...]
    """their code, their defaults, and their defaults by keyword."""
    referents: tuple[Any, ...]
    """All that the functions refer to, in order: while it is the same, so are those three."""
    hooks: Mapping[str, Any]
    finders: tuple[Any, ...]
    settings: Mapping[str, object]
    overridden: frozenset[str]
    """Operators of PyTorch that have other kernels than its own: `aten/softmax/CPU`."""


def snapshot(
    modules: Sequence[str] = MODULES, classes: Sequence[str] = CLASSES, classes_of: Sequence[str] = CLASSES_OF
) -> ProcessState:
    """Remember these surroundings, and always this package's; all that is watched takes some ten ms."""
    collecting = gc.isenabled()
    gc.disable()  # thousands of new references would set off a search through everything else
    try:
        return _snapshot(_Watched(modules, classes, classes_of), collecting=collecting)
    finally:
        if collecting:
            gc.enable()


def _snapshot(watched: "_Watched", *, collecting: bool) -> ProcessState:
    names = {label: (owner, dict(vars(owner))) for label, owner in _owners(watched)}
    labels, functions = zip(*_functions(names), strict=True)
    return ProcessState(
        modules={name: sys.modules[name] for name in watched.modules if name in sys.modules},
        names=names,
        inherited=_inherited(names),
        functions=(labels, functions),
        code=tuple(tuple(map(part, functions)) for part in _CODE),
        referents=tuple(_referents(*functions)),
        hooks=_hooks(),
        finders=tuple(sys.meta_path),
        settings=settings() | {"garbage collection": collecting},
        overridden=_overridden(),
    )


def changes(before: ProcessState) -> tuple[str, ...]:
    """What was replaced, one line each: `time.perf_counter was replaced`; empty where nothing was.

    Some thousand names are compared several times for each variant, without a loop in Python where nothing
    is different.
    """
    modules = before.modules.items()
    found = [f"{name} was replaced" for name, module in modules if sys.modules.get(name) is not module]
    for label, (owner, attributes) in before.names.items():
        now = vars(owner)
        same = all(map(is_, map(now.get, attributes, repeat(_ABSENT)), attributes.values()))
        if not same:
            found += _replaced(label, now, attributes)
        if not same or len(now) != len(attributes):
            added, bases = now.keys() - attributes.keys(), before.inherited.get(label, ())
            hiding = (name for name in sorted(added) if any(name in base for base in bases))
            found += [f"{label}.{name} was replaced" for name in hiding]
    found += _recoded(before)
    hooks = _hooks()
    found += [f"{name} was set" for name, hook in before.hooks.items() if hooks[name] is not hook]
    found += _new_finders(before.finders)
    found += [
        f"a kernel of PyTorch was replaced: {name}" for name in sorted(_overridden() - before.overridden)
    ]
    return tuple(found)


def settings() -> dict[str, object]:
    """Global settings of PyTorch, the processor and the process, by name."""
    rounding = ctypes.CDLL(None).fegetround() if sys.platform != "win32" else 0
    return {
        "torch's default dtype": torch.get_default_dtype(),
        "torch's default device": str(torch.get_default_device()),
        "rounding of the processor": rounding,
        "flushing of denormal numbers": sys.float_info.min / 2 == 0.0,
        "torch's recording of gradients": torch.is_grad_enabled(),
        "torch's inference mode": torch.is_inference_mode_enabled(),
        "torch's deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "precision of torch's matrix products": torch.get_float32_matmul_precision(),
        "garbage collection": gc.isenabled(),
        "working directory": os.getcwd(),  # noqa: PTH109  (an object per call would be slower)
    }


HARMLESS = frozenset({
    "flushing of denormal numbers",  # loading code that was built with -ffast-math is enough
    "torch's recording of gradients",
    "torch's inference mode",
    "torch's deterministic algorithms",
    "precision of torch's matrix products",
    "working directory",
})  # fmt: skip
"""Settings that a right candidate may well change for itself."""


def changed_settings(before: ProcessState) -> tuple[str, ...]:
    """Names of the global settings that have another value than before."""
    now = settings()
    return tuple(name for name, value in before.settings.items() if now[name] != value)


class _Watched(NamedTuple):
    """Names."""

    modules: Sequence[str]
    classes: Sequence[str]
    classes_of: Sequence[str]


def _owners(watched: _Watched) -> Iterator[tuple[str, Any]]:
    """Every module and class that is watched, with the name that a reader knows it by."""
    for name in watched.modules:
        if name in sys.modules:
            yield name, sys.modules[name]
    own = {name: module for name, module in sys.modules.items() if name.startswith("pipeline.") and module}
    yield from own.items()
    seen: set[int] = set()
    for label, owner in (*_classes(watched), *_classes_in(own)):
        if id(owner) not in seen:
            seen.add(id(owner))
            yield label, owner


def _classes(watched: _Watched) -> Iterator[tuple[str, type]]:
    for name in watched.classes:
        module, _, kind = name.rpartition(".")
        owner = vars(sys.modules[module]).get(kind) if module in sys.modules else None
        if isinstance(owner, type):
            yield name, owner
    yield from _classes_in({name: sys.modules[name] for name in watched.classes_of if name in sys.modules})


def _classes_in(modules: Mapping[str, Any]) -> Iterator[tuple[str, type]]:
    """Classes that a module shows and that belong to its package."""
    for name, module in modules.items():
        package = name.partition(".")[0]
        for attribute, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__.partition(".")[0] == package:
                yield f"{name}.{attribute}", value


def _inherited(names: Mapping[str, tuple[Any, Mapping[str, Any]]]) -> dict[str, tuple[frozenset[str], ...]]:
    """Of a module what is built in. `object` is left out: all may have their own `__init__` or `__eq__`."""
    classes = {label: owner for label, (owner, _) in names.items() if isinstance(owner, type)}
    bases = {base for owner in classes.values() for base in owner.__mro__[1:-1]}
    of = {base: frozenset(vars(base)) - {_LAZY} for base in bases}
    built_in = (frozenset(name for name in vars(sys.modules["builtins"]) if not name.startswith("_")),)
    return {
        label: tuple(of[base] for base in owner.__mro__[1:-1]) if label in classes else built_in
        for label, (owner, _) in names.items()
    }


def _functions(
    names: Mapping[str, tuple[Any, Mapping[str, Any]]],
) -> Iterator[tuple[str, types.FunctionType]]:
    for label, (_, attributes) in names.items():
        for name, value in attributes.items():
            if isinstance(value, _HOLDERS):
                function = _function(value)
                if function is not None:
                    yield f"{label}.{name}", function


def _function(value: Any) -> types.FunctionType | None:
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "__func__", value) if isinstance(value, staticmethod | classmethod) else value
    return value if isinstance(value, types.FunctionType) else None


def _recoded(before: ProcessState) -> Iterator[str]:
    """Functions that have other code or defaults than before."""
    labels, functions = before.functions
    now = _referents(*functions)
    # Reading `__code__` asks Python's audit hooks, which takes far longer than all of this.
    if len(now) == len(before.referents) and all(map(is_, now, before.referents)):
        return
    if all(all(map(is_, map(part, functions), then)) for part, then in zip(_CODE, before.code, strict=True)):
        return
    for label, function, *code in zip(labels, functions, *before.code, strict=True):
        if not all(part(function) is then for part, then in zip(_CODE, code, strict=True)):
            yield f"{label} was given other code or defaults"


def _replaced(label: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for name, value in before.items():
        if (name in now and now[name] is value) or name == _LAZY:
            continue
        if not (callable(value) or isinstance(value, _DESCRIPTORS)):
            continue  # caches and counters are data
        if name not in now:
            yield f"{label}.{name} was removed"
        elif not (_interpreters_own(label, now[name]) or _wrapped(now[name], value)):
            yield f"{label}.{name} was replaced"


def _interpreters_own(label: str, value: Any) -> bool:
    if not label.startswith("triton.language"):
        return False
    return value is print or _source(getattr(value, "func", value)).endswith(_INTERPRETER)


def _wrapped(value: Any, original: Any) -> bool:
    """Whether PyTorch's own wrapper holds what was there before, and no other function."""
    if not _source(value).endswith(_WRAPPERS):
        return False
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    functions = [content for content in cells if callable(content)]
    return len(functions) == 1 and functions[0] is original


def _source(function: Any) -> str:
    return getattr(getattr(function, "__code__", None), "co_filename", "")


def _hooks() -> dict[str, Any]:
    return {
        "sys.settrace": sys.gettrace(),
        "sys.setprofile": sys.getprofile(),
        "threading.settrace": threading.gettrace(),
        "threading.setprofile": threading.getprofile(),
        "torch's dispatch mode": dispatch_modes(),
        "torch's function mode": function_modes(),
    }


def _new_finders(before: tuple[Any, ...]) -> Iterator[str]:
    """Hooks of the import system that no installed package has added, or that were taken away."""
    yield from ("an import hook was removed" for finder in before if finder not in sys.meta_path)
    for finder in sys.meta_path:
        kind = finder if isinstance(finder, type) else type(finder)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
        if finder not in before and not file.startswith((sys.prefix, sys.base_prefix)):
            yield f"an import hook was added: {kind.__name__}"


def _overridden() -> frozenset[str]:
    """What Python code has registered for PyTorch's own operators: `aten/softmax.int/CPU`."""
    known: set[str] = getattr(torch.library, "_impls", set())
    own = (name for name in known if name.startswith("aten/"))
    return frozenset(name for name in own if name.rpartition("/")[2].startswith(_COMPUTING_KEYS))
