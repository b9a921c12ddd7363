"""The candidate's side: launches on mapped buffers, on the host and by way of a device, and answers."""

import faulthandler
import mmap
import os
import signal
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from pipeline.backends.devices.device_registry import device
from pipeline.verify.harness.buffers import FIRST, Arena, Layout, lay_out, view
from pipeline.verify.harness.conventions.outputs_given import DeviceBuffers, MappedBuffers
from pipeline.verify.harness.messages import KernelCall, OutputState
from pipeline.verify.harness.runtime.memory_protection import protected
from pipeline.verify.harness.runtime.refusal import refuse
from tests.verify.harness.candidate_process import answer_of
from tests.verify.harness.in_a_child import ObservedCalls, observe_calls
from tests.verify.oracle.simulated import Action, prepared, softmax


def call(layout: Layout, **changes: bool | float) -> KernelCall:
    """A call on one thread."""
    return KernelCall(nonce="", layout=layout, poison=FIRST.poison, threads=1, **changes)


def on_host(action: Action, arena: Arena, request: KernelCall) -> tuple[OutputState, ...]:
    """Launch on the mapped buffers."""
    descriptor = os.open(arena.path, os.O_RDWR)
    memory = mmap.mmap(descriptor, arena.size)
    os.close(descriptor)
    return MappedBuffers(memory, request).call(action, nullcontext)


def by_way_of_a_device(action: Action, arena: Arena, request: KernelCall) -> tuple[OutputState, ...]:
    """Launch on a copy, as on a device."""
    descriptor = os.open(arena.path, os.O_RDWR)
    memory = mmap.mmap(descriptor, arena.size)
    os.close(descriptor)
    return DeviceBuffers(memory, request, device("cpu")).call(action, nullcontext)


@pytest.mark.parametrize("run", [on_host, by_way_of_a_device])
@pytest.mark.parametrize("padded", [False, True])
def test_launch_writes_into_the_shared_buffers(run, padded: bool) -> None:
    """Results, guards and inputs are there afterwards, also when a device computed in between."""
    case = prepared(padded=padded)
    layout = lay_out(case.problem, padded=padded, shift=256)
    with Arena(layout.size) as arena:
        arena.write(layout, case.inputs, FIRST)
        (seen,) = run(softmax, arena, call(layout, disturb=True))
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
        (seen,) = on_host(replace, arena, call(layout))
    assert seen.shape == (29, 13)
    assert seen.moved


def test_refusals_are_one_line() -> None:
    """The reason is the exception's first line; memory is the sandbox's to tell."""
    assert refuse(ValueError("bad size\nmore"), "load").reason == "ValueError: bad size"
    with pytest.raises(MemoryError):
        refuse(MemoryError(), "call")


def test_late_writes_on_a_device_are_seen() -> None:
    """What changes after the result was fetched is reported with its output."""
    layout = lay_out(prepared().problem, padded=False)
    writers = []

    def late(tensors: dict[str, torch.Tensor]) -> None:
        softmax(tensors)
        writers.append(threading.Timer(0.05, tensors["y"].zero_))
        writers[0].start()

    with Arena(layout.size) as arena:
        (seen,) = by_way_of_a_device(late, arena, call(layout, settle=0.3))
    writers[0].join()
    assert seen.changed_later


def test_what_is_noticed(tmp_path: Path) -> None:
    """Operators that compute are named once each, views and copies are not; so is NumPy, and settings."""
    answer = answer_of(observe_calls, tmp_path, ObservedCalls)
    first, second, third = answer.calls
    assert [each.name for each in first.operations] == ["aten::add", "aten::_softmax", "aten::add_"]
    assert (first.tampering, first.counted, first.threads, first.children) == ((), 3, 0, 0)
    assert second.operations == ()
    assert "torch's default dtype was changed" in (second.tampering or ())
    assert [each.name for each in third.operations] == ["numpy:exp", "python:tolist"]
    assert third.tampering is None


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
