"""The Triton backend. In: a module with an ordinary host-side launch. Out: binaries for CUDA and HIP targets.

The launch runs on tensors without memory (`meta`) under a driver that stands for the target, so a device is
needed neither for our own kernels nor for a third party's. Where the device is absent, `load` gives the
launch in Triton's interpreter.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipeline.backends.backend import Backend, CompileJob, Interpreter, MemoryFault
from pipeline.backends.language import TRITON
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.outcome import Failure
from pipeline.records.results.compiled import Compiled

if TYPE_CHECKING:
    from pipeline.backends.backend import Launch


class Triton(Backend):
    """Compiles offline, launches through the implementation's own host code."""

    kinds: ClassVar[frozenset[DeviceKind]] = frozenset({"cuda", "hip"})
    language = TRITON
    shape_matters = True  # Triton specialises on divisibility by 16 and on arguments equal to 1
    preload = ("pipeline.backends.triton.compiler_warm_up",)
    device_preload = ("pipeline.backends.triton.device_driver",)
    interpreter = Interpreter(
        where="interpreter",
        environment={"TRITON_INTERPRET": "1"},
        preload=(
            "pipeline.backends.triton.loading",
            "pipeline.backends.triton.interpretation.interpreter",
            "triton.experimental.gluon",  # else the first launch imports it
        ),
        toolchain=("triton", "torch", "numpy"),
    )
    calls_packages = True
    in_candidates = True

    def toolchain(self, target: Target) -> dict[str, str]:
        """Versions of Triton and of the assembler in it, and the options that we set."""
        from pipeline.backends.triton.toolchain import versions

        return versions(target)

    def sources(self, implementation: Implementation, root: Path) -> tuple[Path, ...]:
        """The module and what it imports from the repository, directly or not; of a package all its own."""
        if implementation.call is not None:
            from pipeline.backends.installed_packages import package_files

            return tuple(package_files(implementation.call).values())
        from pipeline.backends.local_imports import closure

        return closure([root / implementation.source], root)

    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Compile every kernel that one launch on the workload's shape starts."""
        from pipeline.backends.triton import compiler_warm_up  # noqa: F401
        from pipeline.backends.triton.compilation import compile_offline

        return compile_offline(job, root, folder)

    def load(self, job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":
        """The implementation's launch: on the device, or in the interpreter if the process was started so."""
        from pipeline.backends.triton.loading import load

        return load(job, compiled, root, folder)

    def count_launches(self) -> Callable[[], int]:
        """On a device or in the interpreter; called before a candidate's code is imported."""
        from pipeline.backends.triton.launch_counter import count_launches

        return count_launches()

    def take_remarks(self) -> tuple[str, ...]:
        """Of the interpreter; none on a device."""
        from pipeline.backends.triton.execution_mode import interpreting

        if not interpreting():
            return ()
        from pipeline.backends.triton.interpretation.dot_precision import take_remarks

        return take_remarks()

    def take_memory_faults(self) -> tuple[MemoryFault, ...]:
        """Of the interpreter; none on a device."""
        from pipeline.backends.triton.execution_mode import interpreting

        if not interpreting():
            return ()
        from pipeline.backends.triton.interpretation.sanitizer import SANITIZER

        return SANITIZER.take()
