"""The kinds of device: those of this project, one line each, and those of other packages, one entry point."""

import functools
import importlib

from pipeline.backends.devices.device import Device
from pipeline.backends.outside_code import package_digest
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.entry_points import entry_points
from pipeline.records.errors import ConfigError

GROUP = "kernelmill.devices"
"""Entry points of other packages: name -> `module:Class`."""

HOST = "cpu"
"""The processors of the machine itself: every machine has them, and their limits are read, not declared."""

_OWN = {
    "cpu": "pipeline.backends.devices.cpu:Cpu",
    "cuda": "pipeline.backends.devices.cuda:Cuda",
    "hip": "pipeline.backends.devices.hip:Hip",
}


@functools.cache
def device_kinds() -> tuple[DeviceKind, ...]:
    """All kinds of device, those of this project first."""
    return (*_OWN, *(name for name in entry_points(GROUP) if name not in _OWN))


@functools.cache
def device(kind: DeviceKind) -> Device:
    """The kind of device of that name.

    Raises
    ------
    ConfigError
        The name is unknown, and the text lists the known ones; or its entry point cannot be loaded.
    """
    where = _where(kind)
    module, _, attribute = where.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        if kind in _OWN:
            raise
        raise ConfigError(f"device {kind}: {where} cannot be loaded: {error}") from error
    member: Device = found()
    return member


def executes_on_host(kind: DeviceKind) -> bool:
    """Whether kernels for a kind run on the host's processors; False for a kind that is not installed.

    Records of other machines may name such a kind.
    """
    return (kind in _OWN or kind in device_kinds()) and device(kind).is_host


def outside_device_code(kind: DeviceKind) -> str | None:
    """Digest of the package that a kind of device comes from; None for this project's own kinds."""
    return None if kind in _OWN else package_digest(f"device {kind}", _where(kind).partition(":")[0])


def _where(kind: DeviceKind) -> str:
    """`module:Class`; other packages are searched only if the name is not one of this project's."""
    if kind in _OWN:
        return _OWN[kind]
    found = entry_points(GROUP).get(kind)
    if found is None:
        raise ConfigError(f"kind of device: expected one of {', '.join(device_kinds())}, got '{kind}'")
    return found.value
