"""Triton's private interfaces that the backend uses: interpreter, active driver, parts of the compiler.

Documented are the language, `triton.jit`, `triton.knobs` and the names of `triton` itself; everything else
that is used of Triton is looked up here.
"""

import contextlib
import functools
import importlib
from collections.abc import Iterator
from typing import Any

import triton

from pipeline.records.library_internals import internal, lookup

INTERPRETER = "triton.runtime.interpreter"
PARTS = (
    "InterpreterBuilder", "TensorHandle", "ReduceOps.sum", "ReduceOps.generic_reduce", "_patch_attr",
    "ScanOps.generic_scan", "_patch_lang",
    "_patch_lang_tensor", "_patch_builtin", "_implicit_cvt", "_interpreter", "GridExecutor", "ASTTransformer",
    "FunctionRewriter.ast_transformer", "_patch_lang_core", "InterpreterError", "interpreter_semantic",
    "ReduceScanOpInterface.apply", "_LangPatchScope", "_get_np_dtype", "interpreter_builder",
)  # fmt: skip
"""Of the interpreter: what `pipeline.backends.triton.interpretation.interpreter` corrects."""
COMPILERS = ("triton.backends.nvidia.compiler", "triton.backends.amd.compiler")


@functools.cache
def interpreter() -> Any:
    """Triton's interpreter, with every part that is corrected.

    Raises
    ------
    ToolchainError
        A part is gone.
    """
    for name in PARTS:
        internal(f"{INTERPRETER}:{name}")
    return importlib.import_module(INTERPRETER)


def interpreter_class(name: str) -> Any:
    """`GridExecutor` or `InterpretedFunction`: a launch, and a kernel, in the interpreter."""
    return internal(f"{INTERPRETER}:{name}")


def static_assertion() -> type[Exception]:
    """What the compiler raises where a `tl.static_assert` fails."""
    found: type[Exception] = internal("triton.compiler.errors:CompileTimeAssertionFailure")
    return found


def mangled_type(argument: Any) -> str:
    """The name of an argument's type in a kernel's signature."""
    name: str = internal("triton.runtime.jit:mangle_type")(argument)
    return name


def gpu_target(kind: str, architecture: int | str, warp_size: int) -> Any:
    """What the compiler compiles for."""
    return internal("triton.backends.compiler:GPUTarget")(kind, architecture, warp_size)


def cache_manager(key: str) -> Any:
    """Of the folder in Triton's cache that the compiler keeps a kernel's files in."""
    return internal("triton.runtime.cache:get_cache_manager")(key)


@contextlib.contextmanager
def active_driver(driver: object) -> Iterator[None]:
    """Inside, the driver is the active one; afterwards the one that was active before.

    Without the private attribute, it is Triton's default driver afterwards.
    """
    config = triton.runtime.driver
    before = getattr(config, "_active", None)
    config.set_active(driver)
    try:
        yield
    finally:
        if hasattr(config, "_active"):
            config._active = before  # None is allowed: no driver was needed yet
        else:
            config.reset_active()


def use_driver(name: str) -> None:
    """Make `nvidia` or `amd` the active driver, whose library Triton compiles if its cache has none."""
    triton.runtime.driver.set_active(internal("triton.backends:backends")[name].driver())


def import_compilers() -> None:
    """Import the code generators before processes are forked; absent ones are skipped."""
    for name in COMPILERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def hash_installation() -> None:
    """Compute the digest of Triton's installation that keys of its cache contain.

    If the function is gone, each process computes the digest when it compiles.
    """
    function = lookup("triton.runtime.cache:triton_key")
    if function is not None:
        function()
