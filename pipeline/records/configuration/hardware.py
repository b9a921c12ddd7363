"""What is compiled for and run on; every number with its unit and source."""

from pipeline.records.record import Record

DeviceKind = str
"""A kind of device by its name in `pipeline.backends.devices.device_registry`, or `RECORDED`."""
RECORDED = "recorded"
"""The device of a file of recorded measurements: nothing is compiled for it, and nothing runs on it."""


class Quantity(Record, frozen=True, kw_only=True):
    """A number with its unit and source."""

    value: float
    """The number."""
    unit: str
    """Its unit, for example `B/s`."""
    source: str
    """Datasheet, manual or paper."""


class Hardware(Record, frozen=True, kw_only=True):
    """A hardware target, as `conf/hardware/<name>.yaml` declares it (CPU facts are read from the machine)."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    kind: DeviceKind
    """Kind of device."""
    architecture: str
    """For example `sm_90` or `gfx942`; for a CPU a stable name of its instruction set."""
    limits: dict[str, Quantity]
    """Integers that generate and compile read: warp_size, shared_memory_per_block, registers_per_sm, …"""
    peaks: dict[str, Quantity] = {}
    """What only the analysis reads: dram_bandwidth, dram_latency, matrix_float16, vector_float32, …"""
    features: tuple[str, ...] = ()
    """Instruction-set features that the compiler may use (CPU)."""
    recorded: str | None = None
    """File of recorded measurements to replay; the path is relative to the project."""
    facts: dict[str, str] = {}
    """What was read from the machine: model name, governor, …"""


class Target(Record, frozen=True, kw_only=True):
    """The part of a hardware target that decides what the compiler emits; two devices may share one."""

    kind: DeviceKind
    architecture: str
    limits: dict[str, int]
    features: tuple[str, ...] = ()
