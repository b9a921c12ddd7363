"""What this machine is to the plan: the facts of `cpu` and `local`, and which declared devices are here."""

import re
from collections.abc import Mapping

import msgspec

from pipeline.backends.devices.cpu.detection import read_cpu, read_gpu
from pipeline.plan.config.option_rules import NATIVE
from pipeline.records.configuration.hardware import BackendKind, Hardware
from pipeline.records.record import Record, digest

ABSENT = "absent"
_DEVICE_FACTS = ("model", "cores", "threads", "cpu_quota")


class Machine(Record, frozen=True, kw_only=True):
    """Read once per plan."""

    cpu: Hardware
    gpu: tuple[BackendKind, str, str] | None
    """Kind, architecture and product name of the first GPU."""
    nodes: "dict[str, Machine]" = {}
    """Machines of a cluster that stand in for this one, by hardware target: `pipeline.plan.cluster_nodes`."""

    def of(self, hardware: str) -> "Machine":
        """The machine that measures a hardware target."""
        return self.nodes.get(hardware, self)

    @property
    def sees_a_gpu(self) -> bool:
        """Whether any of them has one."""
        return any(each.gpu is not None for each in (self, *self.nodes.values()))


class ResolvedHardware(Record, frozen=True, kw_only=True):
    """A hardware target as this machine sees it."""

    hardware: Hardware
    present: bool


def read_machine() -> Machine:
    """This machine; some milliseconds."""
    return Machine(cpu=read_cpu(), gpu=read_gpu())


def resolve(hardware: Hardware, declared: Mapping[str, Hardware], machine: Machine) -> ResolvedHardware:
    """A hardware target with what is read from the machine; `declared` are all targets of conf/hardware.

    `architecture: native` stands for the CPU of this machine; in `local` for its GPU where that is declared.
    """
    if hardware.recorded is not None or hardware.kind == "recorded":
        return ResolvedHardware(hardware=hardware, present=False)
    machine = machine.of(hardware.name)
    if hardware.architecture != NATIVE:
        return ResolvedHardware(hardware=hardware, present=hardware.name in _here(declared, machine))
    here = _here(declared, machine) if hardware.name == "local" and machine.gpu is not None else ()
    for name in here:
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


def _here(declared: Mapping[str, Hardware], machine: Machine) -> tuple[str, ...]:
    """The declared targets that the first GPU of this machine is: what is measured here may bear their name.

    Devices of one architecture differ in all that is measured (sm_90 is H100 and H200): if the product's name
    contains that of a declared target, then it is this one; else all targets of its architecture will do.
    """
    if machine.gpu is None:
        return ()
    kind, architecture, product = machine.gpu
    fitting = [
        name
        for name, hardware in declared.items()
        if hardware.recorded is None and (hardware.kind, _base(hardware.architecture)) == (kind, architecture)
    ]
    named = [name for name in fitting if _letters(name) in _letters(product)]
    # "NVIDIA GH200 480GB" contains the names of two products; the longer one is meant.
    return (max(named, key=len),) if named else tuple(fitting)


def fingerprint(device: ResolvedHardware, machine: Machine) -> str:
    """Identity of the device that measures: results on an equal one are comparable; `absent` without it."""
    if not device.present:
        return ABSENT
    return identity(device.hardware.kind, machine.of(device.hardware.name))


def identity(kind: BackendKind, machine: Machine) -> str:
    """The same of the device of a machine that measures targets of this kind."""
    if kind != "cpu" and machine.gpu is not None:
        return digest([*machine.gpu, *_host(machine)])
    # Whole numbers, also where a node sent them as JSON.
    limits = {name: int(limit.value) for name, limit in machine.cpu.limits.items()}
    return digest([machine.cpu.architecture, machine.cpu.features, limits, *_host(machine)])


def _host(machine: Machine) -> list[str]:
    return [machine.cpu.facts.get(name, "") for name in _DEVICE_FACTS]


def _base(architecture: str) -> str:
    """Without the feature suffix: a binary for `sm_90a` runs on the same device as one for `sm_90`."""
    return re.sub(r"^(sm_\d+)[af]$", r"\1", architecture)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
