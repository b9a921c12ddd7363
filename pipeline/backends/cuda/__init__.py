"""CUDA C++ for NVIDIA GPUs: NVRTC through cuda-core, one cubin per variant, no device needed to compile.

The ABI is that of the backend `cpp` with a kernel in place of a function: `extern "C" __global__ void
<entry>(tensors, long long dimensions, long long row strides, double scalars)`. Tensors are pointers, inputs
in declared order and then outputs; dimensions and scalars come in declared order; row strides, in elements,
are those of the `row_strided` tensors. Each parameter has 8 bytes, which compile checks against the binary.
Compile-time choices are macros: `ELEMENT_FLOAT32` (`_FLOAT16`, `_BFLOAT16`), every tunable by its name,
every attribute as `EPILOGUE_BIAS_GELU` where it is a word and as `NAME=value` where it is a number.

How many threads start is said by the implementation's `launch`: formulas for grid, block, dynamic shared
memory and cluster, over the names that constraints know (tunables, dimensions, attributes, limits of the
target, `itemsize`). A call launches this one kernel, on torch's current stream, and nothing where the grid is
empty.

Where the device is absent, `load` gives the same source on the CPU (`emulator`).
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipeline.backends.backend import (
    Backend,
    CompileJob,
    ExtensionCompiler,
    Interpreter,
    MemoryFault,
    MemorySpan,
)
from pipeline.backends.c_sources import source_files
from pipeline.backends.devices.device_registry import device
from pipeline.backends.language import CUDA_CPP
from pipeline.records import environment
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.outcome import Failure
from pipeline.records.results.compiled import Compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.backends.backend import Launch
    from pipeline.backends.cpp.extension_builds import Emulation


class Cuda(Backend):
    """The backend `cuda`."""

    kinds: ClassVar[frozenset[DeviceKind]] = frozenset({"cuda"})
    language = CUDA_CPP
    shape_matters = True  # not to the binary, but grid and shared memory are recorded with it
    preload = ("pipeline.backends.cuda.nvrtc",)
    packages = ("cuda-bindings", "cuda-core", "cuda-pathfinder")  # NVRTC itself comes with torch
    interpreter = Interpreter(
        where="emulator",
        environment={environment.EMULATE_CUDA: "1"},
        preload=("pipeline.backends.cuda.emulated_extension",),
        toolchain=("c++", "c++ flags", "torch", "numpy"),
    )
    needs_launch = True
    in_candidates = True

    def toolchain(self, target: Target) -> dict[str, str]:  # noqa: ARG002
        """Versions of NVRTC, cuda-core and the headers, and of the compiler that the emulation takes."""
        from pipeline.backends.cuda.toolchain import versions

        return versions()

    def sources(self, implementation: Implementation, root: Path) -> tuple[Path, ...]:
        """The source and, transitively, what it includes in quotes."""
        return source_files(implementation, root)

    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Compile to a cubin with line numbers; the PTX on the way, the log and the sources are kept."""
        from pipeline.backends.cuda.compilation import compile_offline

        return compile_offline(job, root, folder)

    def load(self, job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":  # noqa: ARG002
        """The cubin on the device, or its source on the CPU in a process that was started for that.

        Raises
        ------
        LaunchError
            There is no NVIDIA GPU here, or the driver refuses the binary.
        """
        if environment.emulates_cuda():
            from pipeline.backends.cuda.emulator import load_emulated

            return load_emulated(job, folder)
        from pipeline.backends.cuda.loading import load_on_device

        return load_on_device(job, folder / compiled.artifact)

    def opens_driver(self) -> bool:
        """NVRTC does."""
        return bool(device("cuda").found())

    def take_memory_faults(self) -> tuple[MemoryFault, ...]:
        """Of the emulation; none on a device."""
        if not environment.emulates_cuda():
            return ()
        from pipeline.backends.cuda import emulated_extension, emulator

        return (*emulator.take_memory_faults(), *emulated_extension.take_memory_faults())

    def emulated_extensions(self) -> "Emulation":
        """Kernels and the host code that launches them, for the host's compiler."""
        from pipeline.backends.cuda.emulated_extension import emulation

        return emulation()

    def extension_compiler(self, target: Target) -> ExtensionCompiler | None:
        """nvcc, where the CUDA toolkit is installed."""
        from pipeline.backends.cuda.nvcc import extension_compiler

        return extension_compiler(target) if target.kind in self.kinds else None

    def watch_extension(self, path: str, spans: "Callable[[], list[MemorySpan]]") -> bool:
        """Of `torch.utils.cpp_extension`, built for the host."""
        from pipeline.backends.cuda.emulated_extension import watch

        return watch(path, spans)
