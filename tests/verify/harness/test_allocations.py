"""Memory that a candidate allocates: patterns, guards, on the host and as on a device."""

import ctypes
import math

import pytest
import torch

from pipeline.verify.harness.observers.allocations import GuardedAllocations
from pipeline.verify.harness.runtime.decoding import overlaps

WHERE = pytest.mark.parametrize("device", [None, torch.device("cpu")], ids=["host", "device"])


def make(
    fresh: GuardedAllocations, device: torch.device | None, *shape: int, dtype=torch.float32
) -> torch.Tensor:
    """A contiguous tensor."""
    found = fresh.make(shape, torch.empty(shape, device="meta").stride(), dtype, device)
    assert found is not None
    return found


def around(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """One byte of memory that lies beside a tensor."""
    raw = (ctypes.c_uint8 * 1).from_address(tensor.data_ptr() + offset)
    return torch.frombuffer(raw, dtype=torch.uint8)


@WHERE
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool])
def test_unwritten_elements_are_counted(device: torch.device | None, dtype: torch.dtype) -> None:
    """All of them, then those that are left."""
    fresh = GuardedAllocations()
    tensor = make(fresh, device, 5, 7, dtype=dtype)
    assert fresh.unwritten(tensor) == 35
    tensor[1:].fill_(1)
    assert fresh.unwritten(tensor) == 7
    assert fresh.unwritten(tensor.t()) == 7
    tensor.fill_(0)
    assert fresh.unwritten(tensor) == 0


@WHERE
def test_fresh_memory_is_undefined_at_first(device: torch.device | None) -> None:
    """NaN in every floating type; a number in every second call."""
    fresh = GuardedAllocations()
    assert make(fresh, device, 3, dtype=torch.float16).isnan().all()
    values = []
    for _ in range(8):
        fresh.next_call()
        values.append(float(make(fresh, device, 1)))
    assert 0 < sum(map(math.isnan, values)) < len(values)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_small_integers_may_look_like_the_pattern(dtype: torch.dtype) -> None:
    """So they are not called unwritten."""
    fresh = GuardedAllocations()
    assert fresh.unwritten(make(fresh, None, 100, dtype=dtype)) == 0


@WHERE
@pytest.mark.parametrize(("offset", "place"), [(-1, "before its start"), (13, "past its end")])
def test_one_byte_beside_is_noticed_once(device: torch.device | None, offset: int, place: str) -> None:
    """Also of a tensor with an odd number of bytes, where the guard begins at the next word."""
    fresh = GuardedAllocations()
    tensor = make(fresh, device, 13 if offset < 0 else 12, dtype=torch.int8)
    around(tensor, offset).fill_(1)
    (line,) = fresh.trespasses()
    assert place in line
    assert fresh.trespasses() == ()


def test_guards_of_tensors_that_are_gone_are_looked_at() -> None:
    """And forgotten afterwards."""
    fresh = GuardedAllocations()
    tensor = make(fresh, None, 4)
    around(tensor, 16).fill_(1)
    assert len(fresh.spans()) == 1
    del tensor
    assert fresh.spans() == []
    assert len(fresh.trespasses()) == 1
    assert fresh.trespasses() == ()


def test_strides_are_kept() -> None:
    """Memory is as large as they need."""
    fresh = GuardedAllocations()
    tensor = fresh.make((3, 4), (1, 3), torch.float32)
    assert tensor is not None
    assert tensor.stride() == (1, 3)
    assert tensor.untyped_storage().nbytes() == 48
    assert tensor.data_ptr() % 256 == 0
    assert fresh.make((3, 0), (1, 1), torch.float32) is None


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((3, 4), (4, 1), False),
        ((3, 4), (1, 3), False),
        ((3, 4), (0, 1), True),
        ((3, 4), (2, 1), True),
        ((1, 4), (0, 1), False),
        ((0, 4), (0, 0), False),
        ((), (), False),
        ((2, 3), (3, 2), False),
        ((4, 3), (3, 2), False),
        ((4, 4), (3, 2), True),
    ],
)
def test_overlaps(shape: tuple[int, ...], strides: tuple[int, ...], expected: bool) -> None:
    """Two elements at one address, by enumeration where strides interleave."""
    assert overlaps(shape, strides) is expected
    offsets = torch.zeros(1, dtype=torch.int64)
    for size, stride in zip(shape, strides, strict=True):
        offsets = (offsets[:, None] + stride * torch.arange(size)).flatten()
    assert (len(offsets.unique()) < len(offsets)) is expected
