"""The interface of a backend: how an implementation's source becomes something that can be launched."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pipeline.backends.language import PYTHON, Language
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.outcome import Failure
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled, StaticFacts
from pipeline.records.results.variant import Variant

if TYPE_CHECKING:
    import torch

    from pipeline.backends.cpp.extension_builds import Emulation, ExtensionSources

    Launch = Callable[[dict[str, torch.Tensor]], None]
    """Called with every tensor by name; writes the outputs in place. Raises LaunchError."""


def without_copies(launch: "Launch") -> "Launch":
    """The launch as it is timed: a callable of a package leaves its results where it put them."""
    timed: Launch = getattr(launch, "timed", launch)
    return timed


class LaunchError(Exception):
    """The implementation refused the call (bad size, no resources): outcome `launch_error`."""


class CompileJob(Record, frozen=True, kw_only=True):
    """One variant to be compiled for one target."""

    variant: Variant
    implementation: Implementation
    problem: Problem
    target: Target
    shared: str | None = None
    """Folder for what the compiles of a round may have in common; it changes no artifact."""


class Interpreter(Record, frozen=True, kw_only=True):
    """How a backend runs its kernels on the CPU if the device is absent."""

    where: Literal["interpreter", "emulator"]
    """What records call it."""
    environment: dict[str, str]
    """Environment variables of the process; `Backend.load` reads them."""
    preload: tuple[str, ...]
    """Modules worth importing once, in that environment."""
    toolchain: tuple[str, ...]
    """The entries of `Backend.toolchain` that an interpretation depends on: no assembler of any target."""


FaultKind = Literal["out_of_bounds", "misaligned", "race"]


class MemoryFault(Record, frozen=True, kw_only=True):
    """What a kernel did to memory that an interpreter or emulator watches."""

    kind: FaultKind
    text: str
    """One line: kernel, programs, tensor, element."""


class CompiledExtension(Record, frozen=True, kw_only=True):
    """What an absent target's compiler made of it."""

    kernels: dict[str, StaticFacts] = {}
    """By name, with the arguments of templates."""
    failure: Failure | None = None
    incomplete: str = ""
    """Why it could not be compiled here, through no fault of the sources."""


class ExtensionCompiler(Record, frozen=True, kw_only=True, eq=False):
    """Compiles extensions of PyTorch for a target that is absent."""

    name: str
    version: str
    compile: "Callable[[ExtensionSources], CompiledExtension]"


class MemorySpan(Record, frozen=True, kw_only=True):
    """Memory that a kernel may access."""

    name: str
    """In messages: `input 0`."""
    start: int
    size: int
    """Bytes."""
    itemsize: int
    guarded: bool = False
    """Whether there is nothing else within 4096 bytes of it."""


class Backend(ABC):
    """One package and one line in `pipeline.backends.registry`; of another package, one entry point.

    Other rooms ask a backend what they need to know and never compare its name. `kinds`, `toolchain`,
    `compile` and `load` have no default.
    """

    kinds: ClassVar[frozenset[DeviceKind]]
    """Targets that it can compile for."""
    language: ClassVar[Language] = PYTHON
    """Of its sources."""
    shape_matters: ClassVar[bool] = False
    """Whether the artifact depends on the workload's dimensions, as with just-in-time compilers."""
    preload: ClassVar[tuple[str, ...]] = ()
    """Modules worth importing once before workers are forked."""
    device_preload: ClassVar[tuple[str, ...]] = ()
    """The same for workers that launch on a device of this machine."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Distributions that it needs and that a machine with torch may lack: a packed job brings them."""
    interpreter: ClassVar[Interpreter | None] = None
    """Runs the source on the CPU if the device is absent; None: variants are compiled only."""
    calls_packages: ClassVar[bool] = False
    """Whether an implementation may be a callable of an installed package (`call`)."""
    needs_launch: ClassVar[bool] = False
    """Whether an implementation declares its `launch` geometry, because its source has no host code."""
    computes_with: ClassVar[tuple[str, ...]] = ()
    """Libraries of the host that execute its sources, such as `numpy`; else their use is `tampered`."""
    in_candidates: ClassVar[bool] = False
    """Whether candidates in the format of KernelBench may contain its language."""
    rules: ClassVar[tuple[str, ...]] = ()
    """What the author of a source must know beyond its signature, one line each."""

    @abstractmethod
    def toolchain(self, target: Target) -> dict[str, str]:
        """Versions that decide the artifact; milliseconds, no heavy imports."""

    def sources(self, implementation: Implementation, root: Path) -> tuple[Path, ...]:
        """The source file and every file of the repository that it includes or imports."""
        return (root / implementation.source,)

    def share(self, job: CompileJob, root: Path) -> None:  # noqa: B027
        """Make in `job.shared` what the compiles of a round have in common, unless another worker does."""

    @abstractmethod
    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Compile into `folder`; runs in a worker process of its own. `root` is the repository."""

    @abstractmethod
    def load(self, job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":
        """Load the artifact that compile left in `folder`; runs in the candidate's process."""

    def count_launches(self) -> Callable[[], int] | None:
        """Observe launches in this process from now on; returns a function that counts them.

        None if the caller launches the kernel itself, so that there is nothing to count.
        """
        return None

    def opens_driver(self) -> bool:
        """Whether its compiler opens the driver of a device that is here, which reserves a lot of memory."""
        return False

    def race_detector(self, artifact: Path) -> Path | None:  # noqa: ARG002
        """What `load_watched` needs, made once; None: the artifact starts no threads that it could watch.

        Raises
        ------
        ToolchainError
            It cannot be had on this machine; the text says why.
        """
        return None

    def load_watched(
        self,
        job: CompileJob,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        detector: Path,  # noqa: ARG002
        scratch: Path,  # noqa: ARG002
    ) -> "Launch":
        """As `load`, from a build of its own in `scratch` that notes races between threads of a program.

        Each call has as many threads as torch; `take_memory_faults` gives what it found. Raises LaunchError.
        """
        raise LaunchError("races between threads are not sought in this language")

    def emulated_extensions(self) -> "Emulation | None":
        """How sources in this language, in an extension of PyTorch, are built for the host; None: not."""
        return None

    def extension_compiler(self, target: Target) -> ExtensionCompiler | None:  # noqa: ARG002
        """How sources in this language, in an extension of PyTorch, are compiled for an absent target.

        None: they cannot be on this machine.
        """
        return None

    def watch_extension(self, path: str, spans: Callable[[], list[MemorySpan]]) -> bool:  # noqa: ARG002
        """Whether a shared object that a candidate built and loaded holds this language's kernels, emulated.

        From then on `take_memory_faults` gives what they do wrong; `spans`: all memory there is, at a launch.
        """
        return False

    def take_memory_faults(self) -> tuple[MemoryFault, ...]:
        """What its interpreter, emulator or detector of races found here since the last call of this."""
        return ()

    def take_remarks(self) -> tuple[str, ...]:
        """What may explain a wrong value, as its interpreter saw it since the last call of this."""
        return ()

    def signature(self, entry: str, problem: Problem) -> str | None:  # noqa: ARG002
        """Declaration of the entry point; None if only the declared source shows it."""
        return None

    def compiled_lines(
        self,
        jobs: Iterable[CompileJob],  # noqa: ARG002
        root: Path,  # noqa: ARG002
    ) -> frozenset[tuple[str, int]] | None:
        """(file, line) of all source lines that are compiled in one of the jobs; None if all are."""
        return None
