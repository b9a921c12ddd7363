"""The candidate's side: launches on mapped buffers, on the host and by way of a device, and answers."""

import faulthandler
import mmap
import os
import signal
import threading

import pytest
import torch

from pipeline.verify.harness.buffers import FIRST, Arena, Layout, lay_out, view
from pipeline.verify.harness.conventions import outputs_given
from pipeline.verify.harness.in_place.messages import CallRequest
from pipeline.verify.harness.in_place.observer import Observer
from pipeline.verify.harness.memory_protection import protected
from tests.verify.oracle.simulated import prepared, softmax


def call(layout: Layout, **changes: bool | float) -> CallRequest:
    """A call on one thread."""
    return CallRequest(layout=layout, threads=1, **changes)


@pytest.mark.parametrize(
    "run", [outputs_given.launch_on_host, lambda *call: outputs_given.launch_on_device("cpu", *call)]
)
@pytest.mark.parametrize("padded", [False, True])
def test_launch_writes_into_the_shared_buffers(run, padded: bool) -> None:
    """Results, guards and inputs are there afterwards, also when a device computed in between."""
    case = prepared(padded=padded)
    layout = lay_out(case.problem, padded=padded, shift=256)
    with Arena(layout.size) as arena:
        arena.write(layout, case.inputs, FIRST)
        descriptor = os.open(arena.path, os.O_RDWR)
        watch = Observer(None, threads=1)
        (seen,) = run(softmax, mmap.mmap(descriptor, layout.size), call(layout, disturb=True), watch)
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
        watch = Observer(None, threads=1)
        (seen,) = outputs_given.launch_on_host(
            replace, mmap.mmap(descriptor, layout.size), call(layout), watch
        )
        os.close(descriptor)
    assert seen.shape == (29, 13)
    assert seen.moved


def test_refusals_are_one_line() -> None:
    """The reason is the exception's first line; memory is the sandbox's to tell."""
    assert outputs_given.refusal_of(ValueError("bad size\nmore")).reason == "ValueError: bad size"
    with pytest.raises(MemoryError):
        outputs_given.refusal_of(MemoryError())


def test_late_writes_on_a_device_are_seen() -> None:
    """What changes after the result was fetched is reported with its output."""
    layout = lay_out(prepared().problem, padded=False)
    writers = []

    def late(tensors: dict[str, torch.Tensor]) -> None:
        softmax(tensors)
        writers.append(threading.Timer(0.05, tensors["y"].zero_))
        writers[0].start()

    with Arena(layout.size) as arena:
        descriptor = os.open(arena.path, os.O_RDWR)
        watch = Observer(None, threads=1)
        memory = mmap.mmap(descriptor, layout.size)
        (seen,) = outputs_given.launch_on_device("cpu", late, memory, call(layout, settle=0.3), watch)
        os.close(descriptor)
    writers[0].join()
    assert seen.changed_later


def test_what_is_noticed() -> None:
    """Operators that compute are named once each, views and copies are not; so are changes of settings."""
    watch = Observer(None, threads=1)
    with watch.call():
        x = torch.randn(4, 4).t().contiguous()
        torch.softmax(x + 1, -1).add_(1).to(torch.float64)
    noticed = watch.noticed(inspect=True, native=True)
    assert noticed.operations == ("aten::add", "aten::_softmax", "aten::add_")
    assert (noticed.tampering, noticed.launches, noticed.threads, noticed.children) == ((), None, 0, 0)
    with watch.call():
        torch.set_default_dtype(torch.float64)
    try:
        noticed = watch.noticed(inspect=True, native=True)
    finally:
        torch.set_default_dtype(torch.float32)
    assert noticed.operations == ()
    assert "torch's default dtype was changed" in noticed.tampering
    assert watch.noticed(inspect=False, native=True).tampering is None


def test_inputs_cannot_be_written_in_a_protected_call() -> None:
    """Writing ends the process, reading does not, and afterwards the memory is as it was."""
    layout = lay_out(prepared().problem, padded=True)
    with Arena(layout.size) as arena:
        arena.write(layout, prepared().inputs, FIRST)
        pid = os.fork()
        if pid == 0:
            faulthandler.disable()
            memory = mmap.mmap(arena.descriptor, layout.size)
            with protected(memory, [slot for slot in layout.slots if slot.role == "input"]):
                readable = view(memory, layout.slots[0]).sum() == view(memory, layout.slots[0]).sum()
                view(memory, layout.slots[1]).zero_()
            view(memory, layout.slots[0]).zero_()
            if not readable:
                os._exit(1)
            with protected(memory, layout.slots[:1]):
                view(memory, layout.slots[0])[-1, -1] = 0
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGSEGV
        assert not arena.view(layout.slots[0]).any(), "the first half of the child was not reached"
