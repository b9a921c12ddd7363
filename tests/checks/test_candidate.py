"""The candidate's side: launches on mapped buffers, on the host and by way of a device, and answers."""

import mmap
import os

import pytest
import torch

from pipeline.checks import candidate
from pipeline.checks.buffers import FIRST, Arena, lay_out
from tests.checks.simulated import prepared, softmax


@pytest.mark.parametrize("run", [candidate._on_host, lambda *call: candidate._on_device("cpu", *call)])
@pytest.mark.parametrize("padded", [False, True])
def test_launch_writes_into_the_shared_buffers(run, padded: bool) -> None:
    """Results, guards and inputs are there afterwards, also when a device computed in between."""
    case = prepared(padded=padded)
    layout = lay_out(case.problem, padded=padded, shift=256)
    with Arena(layout.size) as arena:
        arena.write(layout, case.inputs, FIRST)
        descriptor = os.open(arena.path, os.O_RDWR)
        (seen,) = run(softmax, mmap.mmap(descriptor, layout.size), layout)
        os.close(descriptor)
        x, y = layout.slots
        assert torch.allclose(arena.copy(y), torch.softmax(case.inputs["x"], -1))
        assert torch.equal(arena.copy(x), case.inputs["x"])
        assert all(arena.trespass(slot, FIRST) is None for slot in layout.slots)
        assert (seen.shape, seen.strides, seen.dtype, seen.moved) == ((13, 29), (29, 1), "float32", False)


def test_outputs_that_were_replaced_are_seen() -> None:
    """A candidate cannot swap the tensor for another one."""
    layout = lay_out(prepared().problem, padded=False)

    def replace(tensors: dict[str, torch.Tensor]) -> None:
        tensors["y"].set_(torch.zeros(29, 13, dtype=torch.float32))

    with Arena(layout.size) as arena:
        descriptor = os.open(arena.path, os.O_RDWR)
        (seen,) = candidate._on_host(replace, mmap.mmap(descriptor, layout.size), layout)
        os.close(descriptor)
    assert seen.shape == (29, 13)
    assert seen.moved


def test_refusals_are_one_line() -> None:
    """The reason is the exception's first line; memory is the sandbox's to tell."""
    assert candidate._refused(ValueError("bad size\nmore")).reason == "ValueError: bad size"
    with pytest.raises(MemoryError):
        candidate._refused(MemoryError())
