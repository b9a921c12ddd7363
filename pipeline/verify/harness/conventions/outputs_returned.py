"""Runs in the candidate's process: imports it, constructs its `ModelNew`, calls it, and answers.

In: a `LoadRequest`, then `ConstructRequest`s and `CallRequest`s over a channel. Out: `ReadyReply`,
`CallReply` or `RefusedReply` for each. Expected values never enter this process. The candidate may do
anything in it: the judge reads outputs from shared memory, and changes to the process are looked for after
each step.
"""

import contextlib
import ctypes
import faulthandler
import mmap
import os
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from pipeline.records.record import Record
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.processes.channel import Channel
from pipeline.verify.harness.messages import (
    Answer,
    CallRequest,
    ConstructRequest,
    LoadRequest,
    ReadyReply,
    RefusedReply,
)
from pipeline.verify.harness.observer import Observer
from pipeline.verify.harness.runtime.caller import Caller
from pipeline.verify.harness.runtime.candidate_import import copy_of, import_candidate
from pipeline.verify.harness.runtime.decoding import decode, views
from pipeline.verify.harness.runtime.extension_builds import ExtensionBuilds, stand_in_for_builds
from pipeline.verify.harness.runtime.fake_device import fake_device
from pipeline.verify.harness.runtime.refusal import refuse
from pipeline.verify.harness.runtime.weight_transfer import transfer_weights
from pipeline.verify.torch_internals import import_compiler

import_compiler()  # once in the fork server, not in every child


def serve(channel: Channel) -> None:
    """Answer until the channel closes."""
    faulthandler.disable()  # the sandbox reports how the process ends; the log is the candidate's
    send, receive = channel.send, channel.receive
    load: LoadRequest = receive(LoadRequest)
    descriptor = os.open(load.arena, os.O_RDWR)
    memory = mmap.mmap(descriptor, load.size)
    os.close(descriptor)
    session = _Session(load, memory, confine(Path.cwd()))
    answer: Answer = session.load()
    send(answer)
    while session.alive:
        try:
            message: CallRequest | ConstructRequest = receive(CallRequest | ConstructRequest)
        except EOFError:
            return
        answer = (
            session.construct(message) if isinstance(message, ConstructRequest) else session.call(message)
        )
        send(answer)


class _Session:
    """One candidate: its module, its model, and those who watch it."""

    def __init__(self, load: LoadRequest, memory: mmap.mmap, isolation: tuple[str, ...]) -> None:
        self._load = load
        self._process = os.getpid()
        self._isolation = isolation
        self._memory = memory
        self._device = "cuda" if load.where == "cuda" else "cpu"
        prepared = prepare(load, time.perf_counter)
        self._observer = Observer(load.where, prepared.device_context, copy_of(Path.cwd()))
        self._caller = Caller(memory, self._device, self._observer, prepared.builds, time.sleep)
        self._module: ModuleType | None = None

    @property
    def alive(self) -> bool:
        """Whether there is a candidate to be called."""
        return self._module is not None

    def load(self) -> ReadyReply | RefusedReply:
        """Import the candidate."""
        try:
            with self._observer.watching():
                self._module = import_candidate(Path(self._load.source), Path.cwd())
        except BaseException as error:
            return refuse(error, "import")
        return ReadyReply(
            isolation=self._isolation, process=self._process, tampering=self._observer.tampering()
        )

    def construct(self, message: ConstructRequest) -> ReadyReply | RefusedReply:
        """Make a new model, with the weights of the reference."""
        given = views(self._memory, (*message.inputs, *message.state), self._device)
        # The judge's memory holds something else soon: what the model keeps must be its own.
        given = {name: tensor.clone(memory_format=torch.preserve_format) for name, tensor in given.items()}
        state = {slot.name: given[slot.name] for slot in message.state}
        model, self._caller.model = self._caller.model, None
        try:
            with self._observer.watching():
                if message.update is None:
                    arguments = [decode(value, given) for value in message.arguments]
                    model = instantiate(self._module, message.seed, arguments, self._device)
                elif message.update == "load_state_dict":
                    model.load_state_dict(state, strict=False)
            transfer = transfer_weights(model, state)
        except BaseException as error:
            return refuse(error, "construct")
        self._caller.model, self._caller.names = model, transfer.names
        return ReadyReply(
            state=transfer.state,
            missing=transfer.missing,
            same_names=not transfer.missing and all(own == name for own, name in transfer.names.items()),
            spare=transfer.spare,
            tampering=self._observer.tampering(),
        )

    def call(self, message: CallRequest) -> Answer:
        """Call the model."""
        return self._caller.call(message)


def instantiate(module: Any, seed: int, arguments: list[Any], device: str) -> Any:
    """`ModelNew(*arguments)` of a candidate's module, under a seed, on `cpu` or `cuda`."""
    torch.manual_seed(seed)
    np.random.seed(seed % (1 << 32))
    random.seed(seed)
    model = module.ModelNew(*arguments)
    return model.cuda() if device == "cuda" else model


_FILL = -6  # M_PERTURB: fill what malloc gives
_PATTERN = 0x80  # it gives bytes of 0x7f, huge numbers in every floating type


class PreparedProcess(Record, frozen=True, kw_only=True, eq=False):
    """A process that is ready for a candidate."""

    device_context: Callable[[], AbstractContextManager[Any]]
    builds: ExtensionBuilds


def prepare(load: LoadRequest, clock: Callable[[], float]) -> PreparedProcess:
    """Mend the interpreter, stand in for the device, watch builds."""
    builds = ExtensionBuilds(clock)
    stand_in_for_builds(builds, device=load.where == "cuda")
    fill = getattr(ctypes.CDLL(None), "mallopt", None)  # of the GNU C library
    if fill is not None:
        fill(_FILL, _PATTERN)
    if load.where == "interpreter":
        from pipeline.backends.triton.interpretation.interpreter import interpret_unseen, mend

        mend()
        interpret_unseen()
        torch.compiler.set_stance("force_eager")  # its compiler would ask for the device, too
    if load.where == "cuda":
        return PreparedProcess(device_context=contextlib.nullcontext, builds=builds)
    device_context = fake_device(load.limits, shown=load.where == "interpreter")
    return PreparedProcess(device_context=device_context, builds=builds)
