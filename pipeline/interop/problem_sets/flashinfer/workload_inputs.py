"""Inputs of an imported problem: what its workloads describe, drawn or read when the problem asks.

In: `definition.json` next to the problem: definition, workloads, root of the data set. Out: argument lists.
Random values are of the kinds that flashinfer-bench draws: normal, 8-bit floats within 2, integers of either
sign.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pipeline.interop.problem_sets.flashinfer.data_set import DataSet, DefinitionWorkload, TensorSpec, read

__all__ = ["arguments", "read"]  # what a generated problem.py imports

CustomInputs = Callable[[dict[str, Any], torch.device], dict[str, Any]]
_INTEGERS = {torch.int8: 128, torch.int16: 1024, torch.int32: 1024, torch.int64: 1024, torch.uint8: 0}
_DTYPES = {"float8_e4m3": "float8_e4m3fn"}


def arguments(
    imported: DataSet,
    workload: DefinitionWorkload,
    sizes: dict[str, int] | None = None,
    custom: CustomInputs | None = None,
) -> list[Any]:
    """Inputs of one workload in order, drawn from torch's state; `sizes` replace values of its axes.

    `custom` makes the inputs that are described as `custom`.

    Raises
    ------
    ValueError
        An input is described in a way that is not known, or its file does not hold it.
    """
    axes = workload.axes | (sizes or {})
    described = {name: workload.inputs.get(name, {"type": "random"}) for name in imported.definition.inputs}
    made = dict[str, Any]()
    if custom is not None and any(each.get("type") == "custom" for each in described.values()):
        scalars = {name: each["value"] for name, each in described.items() if each.get("type") == "scalar"}
        made = custom(imported.definition.sizes(axes) | scalars, torch.device("cpu"))
    return [
        made[name] if name in made else _input(imported, name, tensor, described[name], axes)
        for name, tensor in imported.definition.inputs.items()
    ]


def dtype_of(name: str) -> torch.dtype:
    """The type of that name; ValueError where torch has none."""
    found = getattr(torch, _DTYPES.get(name, name), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"dtype {name} is not supported")
    return found


def _input(
    imported: DataSet, name: str, tensor: TensorSpec, described: dict[str, Any], axes: dict[str, int]
) -> Any:
    match described.get("type"):
        case "scalar":
            return described["value"]
        case "safetensors":
            return _from_file(Path(imported.root) / described["path"], described["tensor_key"])
        case "random" if tensor.shape is not None:
            try:
                shape = imported.definition.shape(tensor, axes)
            except KeyError as error:
                raise ValueError(f"input {name}: the workload gives axis {error} no value") from None
            return _random(shape, dtype_of(tensor.dtype))
    raise ValueError(f"input {name}: described as {described}, expected random, scalar or safetensors")


def _random(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    if dtype is torch.bool:
        return torch.randint(0, 2, shape).bool()
    if dtype.is_floating_point:
        values = torch.randn(shape)
        return (values.clamp_(-2.0, 2.0) if dtype.itemsize == 1 else values).to(dtype)
    end = _INTEGERS[dtype]
    return torch.randint(-end, end or 256, shape).to(dtype)


def _from_file(path: Path, key: str) -> torch.Tensor:
    """One tensor of a safetensors file: length of the header (8 bytes), header (JSON), data."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length))
        if key not in header:
            known = ", ".join(sorted(name for name in header if name != "__metadata__"))
            raise ValueError(f"{path}: no tensor '{key}' (known: {known})")
        entry = header[key]
        begin, end = entry["data_offsets"]
        stream.seek(8 + length + begin)
        raw = bytearray(stream.read(end - begin))
    dtype = _SAFETENSORS[entry["dtype"]]
    if not raw:
        return torch.empty(entry["shape"], dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype).reshape(entry["shape"])


_SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "BOOL": torch.bool,
}  # fmt: skip
