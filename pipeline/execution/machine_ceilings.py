"""What the device in this machine reaches: the name of a target in, its measured ceilings out."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pipeline.records.configuration.hardware import Hardware
from pipeline.records.errors import ConfigError
from pipeline.report.ceilings_text import ShownCeilings

Mode = Literal["known", "again", "afresh"]


def measured(name: str, mode: Mode, *, root: Path, conf: Path) -> ShownCeilings:
    """Known figures, or measured now; the device is held meanwhile.

    `again` keeps the better of old and new figures, `afresh` forgets the old ones.

    Raises
    ------
    ConfigError
        The hardware is not here, or not declared.
    """
    hardware, device = _device(name, conf)
    from pipeline.backends.devices.device_ceilings import DeviceCeilings
    from pipeline.backends.devices.device_lock import device_lock
    from pipeline.backends.devices.machine_state import circumstances
    from pipeline.measure.ceilings import ceiling_measurement
    from pipeline.measure.comparison.bench import PRELOAD
    from pipeline.sandbox.processes.fork_server import ForkServer

    measure: Callable[[ForkServer, ceiling_measurement.CeilingsDevice], DeviceCeilings] = {
        "known": ceiling_measurement.measured,
        "again": ceiling_measurement.measured_again,
        "afresh": ceiling_measurement.measured_afresh,
    }[mode]
    kept = ceiling_measurement.CeilingsDevice(hardware.kind, device, root / "cache" / "ceilings")
    server = ForkServer(preload=PRELOAD)
    try:
        with device_lock("cpu" if hardware.kind == "cpu" else device):
            found = measure(server, kept)
    finally:
        server.close()
    return ShownCeilings(
        hardware=hardware,
        ceilings=found,
        circumstances=circumstances(hardware.kind),
        file=ceiling_measurement.cache_path(kept),
    )


def _device(name: str, conf: Path) -> tuple[Hardware, str]:
    """A declared target as this machine has it, and the fingerprint under which results on it are kept."""
    from pipeline.plan.config.declared import declared_hardware
    from pipeline.plan.config.groups import check_option
    from pipeline.plan.local_machine import fingerprint, read_machine, resolve

    check_option(conf, "hardware", name, name)
    machine = read_machine()
    declared = declared_hardware(conf)
    device = resolve(declared[name], declared, machine)
    if not device.present:
        here = machine.gpu[2] if machine.gpu else machine.cpu.facts.get("model", "a CPU")
        raise ConfigError(
            f"{name}: no {device.hardware.architecture} device on this machine (it has {here}); "
            "`kernelmill ceilings` measures what is here"
        )
    return device.hardware, fingerprint(device, machine)
