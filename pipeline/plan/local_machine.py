"""What this machine is to the plan: the facts of `cpu` and `local`, and which declared devices are here."""

import re
from collections.abc import Mapping

import msgspec

from pipeline.backends.devices.cpu.detection import read_cpu
from pipeline.backends.devices.device import FoundDevice
from pipeline.backends.devices.device_registry import HOST, device, device_kinds, executes_on_host
from pipeline.plan.config.option_rules import NATIVE
from pipeline.records.configuration.hardware import RECORDED, DeviceKind, Hardware
from pipeline.records.record import Record, digest

ABSENT = "absent"
_DEVICE_FACTS = ("model", "cores", "threads", "cpu_quota")


class Machine(Record, frozen=True, kw_only=True):
    """Read once per plan."""

    cpu: Hardware
    devices: tuple[FoundDevice, ...] = ()
    """The first device of each kind besides the CPU."""
    nodes: "dict[str, Machine]" = {}
    """Machines of a cluster that stand in for this one, by hardware target: `pipeline.plan.cluster_nodes`."""

    def of(self, hardware: str) -> "Machine":
        """The machine that measures a hardware target."""
        return self.nodes.get(hardware, self)

    @property
    def accelerator(self) -> FoundDevice | None:
        """The first device whose kernels do not run on the host's processors."""
        return next((each for each in self.devices if not executes_on_host(each.kind)), None)

    @property
    def has_devices(self) -> bool:
        """Whether any of them has a device besides its CPU."""
        return any(each.devices for each in (self, *self.nodes.values()))

    def device(self, kind: DeviceKind) -> FoundDevice | None:
        """Its first device of a kind; None for its CPU and for what it does not have."""
        return next((each for each in self.devices if each.kind == kind), None)


class ResolvedHardware(Record, frozen=True, kw_only=True):
    """A hardware target as this machine sees it."""

    hardware: Hardware
    present: bool


def read_machine() -> Machine:
    """This machine; some milliseconds."""
    found = (device(kind).found() for kind in device_kinds() if kind != HOST)
    return Machine(cpu=read_cpu(), devices=tuple(each[0] for each in found if each))


def resolve(hardware: Hardware, declared: Mapping[str, Hardware], machine: Machine) -> ResolvedHardware:
    """A hardware target with what is read from the machine; `declared` are all targets of conf/hardware.

    `architecture: native` stands for the CPU of this machine; in `local` for its GPU where that is declared.
    """
    if hardware.recorded is not None or hardware.kind == RECORDED:
        return ResolvedHardware(hardware=hardware, present=False)
    machine = machine.of(hardware.name)
    if hardware.architecture != NATIVE:
        here = _here(declared, machine.device(hardware.kind))
        return ResolvedHardware(hardware=hardware, present=hardware.name in here)
    for name in _here(declared, machine.accelerator) if hardware.name == "local" else ():
        declaration = declared[name]
        resolved = msgspec.structs.replace(
            declaration,
            name=hardware.name,
            description=hardware.description,
            facts={**declaration.facts, "target": name},
        )
        return ResolvedHardware(hardware=resolved, present=True)
    resolved = msgspec.structs.replace(
        machine.cpu,
        name=hardware.name,
        description=hardware.description,
        limits={**machine.cpu.limits, **hardware.limits},
        peaks={**machine.cpu.peaks, **hardware.peaks},
    )
    return ResolvedHardware(hardware=resolved, present=True)


def _here(declared: Mapping[str, Hardware], found: FoundDevice | None) -> tuple[str, ...]:
    """The declared targets that a device of this machine is: what is measured on it may bear their name.

    Devices of one architecture differ in all that is measured (sm_90 is H100 and H200): if the product's name
    contains that of a declared target, then it is this one; else all targets of its architecture will do.
    """
    if found is None:
        return ()
    base = device(found.kind).base_architecture
    fitting = [
        name
        for name, hardware in declared.items()
        if hardware.recorded is None
        and (hardware.kind, base(hardware.architecture)) == (found.kind, found.architecture)
    ]
    named = [name for name in fitting if _letters(name) in _letters(found.name)]
    # "NVIDIA GH200 480GB" contains the names of two products; the longer one is meant.
    return (max(named, key=len),) if named else tuple(fitting)


def fingerprint(device: ResolvedHardware, machine: Machine) -> str:
    """Identity of the device that measures: results on an equal one are comparable; `absent` without it."""
    if not device.present:
        return ABSENT
    return identity(device.hardware.kind, machine.of(device.hardware.name))


def identity(kind: DeviceKind, machine: Machine) -> str:
    """The same of the device of a machine that measures targets of this kind."""
    found = machine.device(kind)
    if found is not None:
        return digest([*found, *_host(machine)])
    # Whole numbers, also where a node sent them as JSON.
    limits = {name: int(limit.value) for name, limit in machine.cpu.limits.items()}
    return digest([machine.cpu.architecture, machine.cpu.features, limits, *_host(machine)])


def _host(machine: Machine) -> list[str]:
    return [machine.cpu.facts.get(name, "") for name in _DEVICE_FACTS]


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
