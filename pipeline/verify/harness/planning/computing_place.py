"""Where expected values of large sizes are computed: on the device that runs the candidates."""

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from pipeline.backends.devices.device import Device
from pipeline.records.record import Record


@contextlib.contextmanager
def computing_on(where: Device) -> Iterator[None]:
    """Inside, new tensors lie there; afterwards no memory is kept there."""
    if where.is_host:
        yield
        return
    try:
        with torch.device(where.torch_device):
            yield
    finally:
        where.release()


def on_host(item: Any) -> Any:
    """Nested records, tuples and mappings with all tensors on the host."""
    if isinstance(item, torch.Tensor):
        return item.cpu()
    if isinstance(item, tuple):
        return tuple(map(on_host, item))
    if isinstance(item, dict):
        return {name: on_host(each) for name, each in item.items()}
    if isinstance(item, Record):
        fields = {name: on_host(getattr(item, name)) for name in item.__struct_fields__}
        return msgspec.structs.replace(item, **fields)
    return item
