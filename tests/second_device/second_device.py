"""The kind of device `second`, as its package brings it."""

import types

import second_device_native
import torch

from pipeline.backends.devices.cpu.measuring import MEASUREMENT
from pipeline.backends.devices.device import Device, DeviceMeasurement, FoundDevice

NAME = "second"


class SecondDevice(Device):
    """Tensors in the host's memory that are not the host's."""

    kind = NAME
    torch_device = NAME

    def found(self) -> tuple[FoundDevice, ...]:
        """One."""
        return (FoundDevice(kind=NAME, architecture="second_1", name="Second"),)

    def measurement(self) -> DeviceMeasurement:
        """As the host's."""
        return MEASUREMENT


def _module() -> types.ModuleType:
    module = types.ModuleType(NAME)
    answers = {"is_available": True, "device_count": 1, "current_device": 0, "_is_in_bad_fork": False}
    for name, answer in answers.items():
        setattr(module, name, lambda answer=answer: answer)
    module.manual_seed_all = lambda seed: None
    return module


second_device_native.register()
torch.utils.rename_privateuse1_backend(NAME)
torch._register_device_module(NAME, _module())
