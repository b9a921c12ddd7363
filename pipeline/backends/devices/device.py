"""The interface of a kind of device: what is present, where tensors lie, how calls are timed and observed.

A kind of device is a `Device` with its `DeviceMeasurement`. Both are values without state whose heavy imports
(torch, a driver's library) happen inside of their methods. Verdicts depend on the code of the `Device`,
measurements on that of both.
"""

import abc
import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipeline.records.configuration.hardware import DeviceKind, Target

if TYPE_CHECKING:
    import torch

    from pipeline.backends.devices.device_ceilings import DeviceCeilings
    from pipeline.records.results.profiled import Conditions, Counters, Peak, Unmeasured

Call = Callable[[], object]

FLUSH_FACTOR = 2  # a flush writes this many times the cache, so that nothing of the working set remains
CALL_REFUSED = 3
"""Exit code of a process under a profiler whose callable refused the call; the reason is its last line."""


class NotAvailable(Exception):
    """A source of readings, or one value of it, is not available; the text says why, in one line."""


class CannotRecord(Exception):
    """The callable cannot be recorded as a graph."""


class FoundDevice(NamedTuple):
    """A device of this machine."""

    kind: DeviceKind
    architecture: str
    """As a hardware target names it: `sm_90`, `gfx942`."""
    name: str
    """Of the product, as its driver reports it."""


class MemoryChecker(NamedTuple):
    """A tool under which a process runs, and which finds illegal accesses to the memory of a device."""

    command: tuple[str, ...]
    """What the command of the process follows."""
    environment: Mapping[str, str]
    place: Callable[[str], str | None]
    """Of what the tool wrote to its log: the first illegal access in one line; None if there is none."""


class Device(abc.ABC):
    """One line in `pipeline.backends.devices.device_registry`; of another package, one entry point."""

    kind: DeviceKind
    """Its name in conf/hardware and in every result."""
    torch_device: str
    """The torch device that holds tensors."""
    is_host: bool = False
    """Whether kernels run on the processors of the host: they share its memory, threads and clock with
    everything else there, a call is a function call, and every machine has one."""
    has_graphs: bool = False
    """Whether launches can be recorded once and replayed as a graph."""

    @abc.abstractmethod
    def found(self) -> tuple[FoundDevice, ...]:
        """The devices that this process may use; milliseconds, without a context on the device."""

    @abc.abstractmethod
    def measurement(self) -> "DeviceMeasurement":
        """How calls on it are timed and observed."""

    def base_architecture(self, architecture: str) -> str:
        """What of an architecture's name decides whether a binary for it runs; all of it by default."""
        return architecture

    def mismatch(self, target: Target) -> str | None:
        """Why a target that was planned for is not on this machine: `has no …`; None if it is."""
        wanted = self.base_architecture(target.architecture)
        if any(each.architecture == wanted for each in self.found()):
            return None
        return f"has no {target.architecture} device, which the plan counts on"

    def driver_folders(self) -> tuple[Path, ...]:
        """Where its driver must be able to write in this process, also if the process is confined."""
        return ()

    def memory_checker(self, log: Path) -> MemoryChecker | None:  # noqa: ARG002
        """The tool that finds illegal accesses and writes to `log`; None, as by default, if there is none."""
        return None

    def allocate(self, elements: int, dtype: "torch.dtype") -> "torch.Tensor":
        """A block of its memory, filled with zeros."""
        import torch

        return torch.zeros(elements, dtype=dtype, device=self.torch_device)

    def synchronize(self) -> None:
        """Wait for everything that was launched; nothing by default."""
        return

    def release(self) -> None:
        """Return memory that this process keeps for later tensors; nothing by default."""
        return

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """Inside, new tensors lie there; afterwards no memory is kept there."""
        if self.is_host:
            yield
            return
        import torch

        try:
            with torch.device(self.torch_device):
                yield
        finally:
            self.release()

    def count_launches(self) -> Callable[[], int] | None:
        """Observe launches of kernels in this process from now on; how many there were, in any language.

        None, as by default, if the device cannot be observed so: a backend may count its own launches
        (`pipeline.backends.backend.Backend.count_launches`).
        """
        return None


def measurement_of(package: str) -> "DeviceMeasurement":
    """`MEASUREMENT` of the module `measuring` in a device's package.

    It is not imported by its full name: verdicts depend on what a `Device` imports, and not on what measures.
    """
    found: DeviceMeasurement = importlib.import_module(".measuring", package).MEASUREMENT
    return found


class RecordedCall:
    """A call that was recorded as a graph.

    To start a graph takes some microseconds, so where many calls are made, many of them are one graph.
    """

    def __init__(self, one: Call, several: Call, calls: int) -> None:
        """`several` makes so many `calls` of `one`."""
        self._one = one
        self.several = several
        self.calls = calls

    def __call__(self) -> object:
        """Replay it once."""
        return self._one()


class Timer(Protocol):
    """How calls are timed on one kind of device; made in the process that makes the calls."""

    def prepare(self) -> None:
        """Set threads and affinity; before the first operation."""
        ...

    def recorded(self, call: Call) -> Call:
        """The call as a `RecordedCall`; the call itself if the device has no graphs.

        Raises
        ------
        CannotRecord
            The call does something that no graph can hold.
        """
        ...

    def settle(self, call: Call, seconds: float) -> None:
        """Run untimed calls for so long (at least one), until caches and workers are as in steady state."""
        ...

    def batch(self, call: Call, calls: int) -> float:
        """Seconds that so many calls took, back to back, each on a flushed cache if that is asked for."""
        ...

    def straight(self, call: Call, calls: int) -> float:
        """Seconds that so many calls took, and nothing else between the clock's two readings."""
        ...

    def latencies(self, call: Call, gaps: Sequence[float]) -> tuple[float, ...]:
        """Seconds of each of some calls, with so many idle seconds before each: what a server sees."""
        ...

    def host_seconds(self, call: Call, calls: int) -> float | None:
        """Seconds of the host for one call, while the device works on; None if the host is the device."""
        ...

    def facts(self) -> dict[str, str]:
        """What was found while measuring: name, clock, driver, threads."""
        ...


class ConditionSource(Protocol):
    """Reads clocks, temperature, power and disturbances."""

    beside: bool
    """Whether readings may be taken while the device is timed."""

    def read(self) -> "Conditions":
        """One reading."""
        ...

    def lines(self) -> dict[str, str]:
        """For people: every quantity -> its value now, or why it is absent."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class EnergyMeter(Protocol):
    """A counter of energy."""

    source: str

    def joules(self) -> float:
        """Since any moment in the past; never less than before.

        Raises
        ------
        NotAvailable
            The counter cannot be read any more.
        """
        ...


class DeviceMeasurement(abc.ABC):
    """How calls on a kind of device are timed, what is observed meanwhile, and what the device reaches.

    A timer and ceilings are required. What a device does not report is absent by default, with a reason.
    """

    kind: DeviceKind
    has_profiler: bool = False
    """Whether a profiler counts the calls of a process from outside (`count_process`)."""

    @abc.abstractmethod
    def timer(self, *, flush_cache: bool) -> Timer:
        """A clock for this process."""

    @abc.abstractmethod
    def ceilings(
        self, folder: Path, products: tuple[str, ...], known: "DeviceCeilings | None"
    ) -> "DeviceCeilings":
        """Measure what the device reaches, in a few seconds; `folder` takes temporary files.

        `products` are dtypes of matrix products; what is `known` besides is left as it is.
        """

    def ceiling_sources(self) -> tuple[Path, ...]:
        """Files that decide the ceilings, besides the file of this class: others measure them anew."""
        return ()

    def circumstances(self) -> dict[str, str]:
        """What else the ceilings depend on: boot, cores, limits of the clock, driver, versions."""
        from pipeline.backends.devices.machine_state import machine_state

        return machine_state()

    def lock_name(self, device: str) -> str:
        """Name of the lock that a process holds while it measures on the device with this fingerprint."""
        return device

    def before_confinement(self) -> None:
        """What a process that will be confined has to do first, as others do it in `Timer.prepare`."""
        return

    def conditions(self, uuid: str | None = None) -> ConditionSource:  # noqa: ARG002
        """The readings of the device with this identity, or of the first one.

        Raises
        ------
        NotAvailable
            Nothing can be read here; the text says why.
        """
        raise NotAvailable(f"conditions of {self.kind} devices are not read")

    def energy_meter(self) -> AbstractContextManager[EnergyMeter]:
        """The energy counter of the device that this process uses.

        Raises
        ------
        NotAvailable
            There is none, or it may not be read: the text says which and what to do.
        """
        raise NotAvailable(f"energy of {self.kind} devices is not read")

    @abc.abstractmethod
    def peak_memory(self, call: Call) -> "Peak":
        """Make the call once, to its end; what it took beyond what was there before."""

    def count_calls(self, batch: Callable[[], int]) -> "Counters | Unmeasured | None":  # noqa: ARG002
        """Hardware counters per call, counted in this process; None if a device has none of the kind.

        `batch` runs some calls to their end and returns how many.
        """
        return None

    def count_process(
        self, command: Sequence[str], folder: Path, *, flush_cache: bool
    ) -> "Counters | Unmeasured":
        """Hardware counters of a process that makes one call within `profiled`; `folder` takes files."""
        raise NotImplementedError(f"{self.kind}: no profiler counts a process from outside")

    @contextlib.contextmanager
    def profiled(self) -> Iterator[None]:
        """The profiler of `count_process` counts what is launched inside; nothing by default."""
        yield

    def counter_lines(self) -> dict[str, str]:
        """For people: whether there are counters, or why not."""
        return {"counters": "absent: not read"}
