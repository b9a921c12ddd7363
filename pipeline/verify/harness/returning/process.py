"""Runs in the candidate's process: import it, construct its `ModelNew`, call it when told, and answer.

In: `Load`, then `Construct`s and `Call`s over a channel. Out: `Ready`, `Done` or `Refused` for each.
Expected values never come here. The candidate may do here what it likes: what it returns is read by the
judge from shared memory, and what it changes around itself is looked for after each step.
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
import torch._dynamo  # a dispatch mode would import it in every child, which takes 2.5 s

from pipeline.records.record import Record
from pipeline.sandbox.channel import Channel
from pipeline.sandbox.confine import confine
from pipeline.verify.harness.returning.messages import Answer, Call, Construct, Load, Ready, Refused
from pipeline.verify.harness.returning.observer import Observer
from pipeline.verify.harness.returning.runtime.caller import Caller
from pipeline.verify.harness.returning.runtime.candidate_import import import_candidate
from pipeline.verify.harness.returning.runtime.decoding import decode, views
from pipeline.verify.harness.returning.runtime.extension_builds import Builds, stand_in_for_builds
from pipeline.verify.harness.returning.runtime.fake_device import pretend
from pipeline.verify.harness.returning.runtime.refusal import refuse
from pipeline.verify.harness.returning.runtime.weight_transfer import take_over


def serve(channel: Channel) -> None:
    """Answer until the channel closes."""
    faulthandler.disable()  # how the process ends is told by the sandbox; the log is the candidate's
    send, receive = channel.send, channel.receive
    load: Load = receive(Load)
    descriptor = os.open(load.arena, os.O_RDWR)
    memory = mmap.mmap(descriptor, load.size)
    os.close(descriptor)
    session = _Session(load, memory, confine(Path.cwd()))
    answer: Answer = session.load()
    send(answer)
    while session.alive:
        try:
            message: Call | Construct = receive(Call | Construct)
        except EOFError:
            return
        answer = session.construct(message) if isinstance(message, Construct) else session.call(message)
        send(answer)


class _Session:
    """One candidate: its module, its model, and those who watch it."""

    def __init__(self, load: Load, memory: mmap.mmap, isolation: tuple[str, ...]) -> None:
        self._load = load
        self._process = os.getpid()
        self._isolation = isolation
        self._memory = memory
        self._device = "cuda" if load.where == "cuda" else "cpu"
        prepared = prepare(load, time.perf_counter)
        self._observer = Observer(load.where, prepared.pretence)
        self._caller = Caller(memory, self._device, self._observer, prepared.builds, time.sleep)
        self._module: ModuleType | None = None

    @property
    def alive(self) -> bool:
        """Whether there is a candidate to be called."""
        return self._module is not None

    def load(self) -> Ready | Refused:
        """Import the candidate."""
        try:
            with self._observer.watching():
                self._module = import_candidate(Path(self._load.source), Path.cwd())
        except BaseException as error:
            return refuse(error, "import")
        return Ready(isolation=self._isolation, process=self._process, tampering=self._observer.tampering())

    def construct(self, message: Construct) -> Ready | Refused:
        """Make a new model, with the weights of the reference."""
        given = views(self._memory, (*message.inputs, *message.state), self._device)
        # The judge's memory holds something else soon: what the model keeps must be its own.
        given = {name: tensor.clone(memory_format=torch.preserve_format) for name, tensor in given.items()}
        state = {slot.name: given[slot.name] for slot in message.state}
        self._caller.model = None
        try:
            with self._observer.watching():
                arguments = [decode(value, given) for value in message.arguments]
                model = self._made(message.seed, arguments)
            takeover = take_over(model, state)
        except BaseException as error:
            return refuse(error, "construct")
        self._caller.model, self._caller.names = model, takeover.names
        return Ready(
            state=takeover.state,
            missing=takeover.missing,
            spare=takeover.spare,
            tampering=self._observer.tampering(),
        )

    def call(self, message: Call) -> Answer:
        """Call the model."""
        return self._caller.call(message)

    def _made(self, seed: int, arguments: list[Any]) -> Any:
        torch.manual_seed(seed)
        np.random.seed(seed % (1 << 32))
        random.seed(seed)
        model = self._module.ModelNew(*arguments)  # type: ignore[union-attr]
        return model.cuda() if self._device == "cuda" else model


_FILL = -6  # M_PERTURB: fill what malloc gives
_PATTERN = 0x80  # it gives bytes of 0x7f, huge numbers in every floating type


class Prepared(Record, frozen=True, kw_only=True, eq=False):
    """A process that is ready for a candidate."""

    pretence: Callable[[], AbstractContextManager[Any]]
    builds: Builds


def prepare(load: Load, clock: Callable[[], float]) -> Prepared:
    """Mend the interpreter, stand in for the device, watch builds."""
    builds = Builds(clock)
    stand_in_for_builds(builds, device=load.where == "cuda")
    fill = getattr(ctypes.CDLL(None), "mallopt", None)  # of the GNU C library
    if fill is not None:
        fill(_FILL, _PATTERN)
    if load.where == "interpreter":
        from pipeline.backends.triton.interpreter import mend

        mend()
    if load.where == "cuda":
        return Prepared(pretence=contextlib.nullcontext, builds=builds)
    pretence = pretend(load.limits, shown=load.where == "interpreter")
    return Prepared(pretence=pretence, builds=builds)
