"""The interface of a backend: how an implementation's source becomes something that can be launched."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.configuration.kernel import Implementation
from pipeline.records.outcome import Failure
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.variant import Variant

if TYPE_CHECKING:
    import torch

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


class Backend(Protocol):
    """One package and one line in `pipeline.backends.registry`; of another package, one entry point."""

    kinds: frozenset[DeviceKind]
    """Targets that it can compile for."""
    shape_matters: bool
    """Whether the artifact depends on the workload's dimensions, as with just-in-time compilers."""
    preload: tuple[str, ...]
    """Modules worth importing once before workers are forked."""

    def toolchain(self, target: Target) -> dict[str, str]:
        """Versions that decide the artifact; milliseconds, no heavy imports."""
        ...

    def sources(self, implementation: Implementation, root: Path) -> tuple[Path, ...]:
        """The source file and every file of the repository that it includes or imports."""
        ...

    def compile(self, job: CompileJob, root: Path, folder: Path) -> Compiled | Failure:
        """Compile into `folder`; runs in a worker process of its own. `root` is the repository."""
        ...

    def load(self, job: CompileJob, compiled: Compiled, root: Path, folder: Path) -> "Launch":
        """Load the artifact that compile left in `folder`; runs in the candidate's process."""
        ...


@runtime_checkable
class Sharing(Protocol):
    """A backend whose compiles of one round have something in common, such as a header compiled ahead."""

    def share(self, job: CompileJob, root: Path) -> None:
        """Make it in `job.shared`, unless another worker does."""
        ...


@runtime_checkable
class LaunchCounting(Protocol):
    """A backend whose implementations launch kernels themselves, so that the harness counts the launches."""

    def count_launches(self) -> Callable[[], int]:
        """Observe launches in this process from now on; returns a function that says how many there were."""
        ...
