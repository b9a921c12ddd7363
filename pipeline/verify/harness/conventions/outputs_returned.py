"""Runs in the candidate's process: imports a file, constructs its `ModelNew`, and calls it.

In: a `ModelFile`, then `ConstructRequest`s and `ForwardCall`s. Out: `ReadyReply`, `CallReply` or
`RefusedReply` for each. Changes to the process are looked for after each step.
"""

import contextlib
import ctypes
import mmap
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from pipeline.backends.cpp import compiler, thread_races
from pipeline.backends.cpp.extension_builds import ExtensionBuilds, stand_in_for_builds
from pipeline.backends.devices.device_registry import HOST, device
from pipeline.backends.registry import backend, candidate_backends, emulated_extensions
from pipeline.records import environment
from pipeline.records.record import Record
from pipeline.sandbox.models.candidate_import import copy_of, import_candidate
from pipeline.sandbox.models.weight_transfer import transfer_weights
from pipeline.verify.harness.messages import (
    Answer,
    ConstructRequest,
    ForwardCall,
    ModelFile,
    ReadyReply,
    RefusedReply,
    Request,
)
from pipeline.verify.harness.observer import Observer
from pipeline.verify.harness.runtime.autotuning import stand_in_for_benchmarks
from pipeline.verify.harness.runtime.caller import Caller
from pipeline.verify.harness.runtime.decoding import decode, views
from pipeline.verify.harness.runtime.fake_device import fake_device
from pipeline.verify.harness.runtime.refusal import refuse
from pipeline.verify.torch_internals import import_compiler

import_compiler()  # once in the fork server, not in every child


class OutputsReturned:
    """One candidate: its module, its model, and those who watch it."""

    def __init__(self, candidate: ModelFile, memory: mmap.mmap) -> None:
        self._source = Path(candidate.source)
        self._memory = memory
        self._device = device(candidate.device)
        prepared = prepare(candidate, time.perf_counter)
        interpreted = candidate.where == "interpreter"
        self._observer = Observer(
            copy_of(Path.cwd()),
            triton="interpreted" if interpreted else "compiled",
            backends=[backend(name) for name in candidate_backends()] if interpreted else (),
            device_context=prepared.device_context,
            has_driver=not self._device.is_host,
        )
        self._caller = Caller(memory, self._device, self._observer, prepared.builds, time.sleep)
        self._module: ModuleType | None = None

    def load(self) -> ReadyReply | RefusedReply:
        """Import the candidate."""
        try:
            with self._observer.watching():
                self._module = import_candidate(self._source, Path.cwd())
        except BaseException as error:
            return refuse(error, "import")
        return ReadyReply(tampering=self._observer.tampering())

    def answer(self, request: Request) -> Answer:
        """Construct or call."""
        if isinstance(request, ConstructRequest):
            return self.construct(request)
        assert isinstance(request, ForwardCall)
        return self._caller.call(request)

    def construct(self, message: ConstructRequest) -> ReadyReply | RefusedReply:
        """Make a new model, with the weights of the reference."""
        given = views(self._memory, (*message.inputs, *message.state))
        place = self._device.torch_device
        # The judge's memory holds something else soon: what the model keeps must be its own.
        given = {name: _copied(tensor, place) for name, tensor in given.items()}
        state = {slot.name: given[slot.name] for slot in message.state}
        model, self._caller.model = self._caller.model, None
        try:
            with self._observer.watching():
                if message.update is None:
                    arguments = [decode(value, given) for value in message.arguments]
                    model = instantiate(self._module, message.seed, arguments, place)
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


def _copied(tensor: torch.Tensor, place: str) -> torch.Tensor:
    """With equal strides."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=place).copy_(tensor)


def instantiate(module: Any, seed: int, arguments: list[Any], place: str) -> Any:
    """`ModelNew(*arguments)` of a candidate's module, under a seed, on a device of torch's."""
    torch.manual_seed(seed)
    np.random.seed(seed % (1 << 32))
    random.seed(seed)
    model = module.ModelNew(*arguments)
    return model if place == device(HOST).torch_device else model.to(place)


_FILL = -6  # M_PERTURB: fill what malloc gives
_PATTERN = 0x80  # it gives bytes of 0x7f, huge numbers in every floating type


class PreparedProcess(Record, frozen=True, kw_only=True, eq=False):
    """A process that is ready for a candidate."""

    device_context: Callable[[], AbstractContextManager[Any]]
    builds: ExtensionBuilds


def prepare(candidate: ModelFile, clock: Callable[[], float]) -> PreparedProcess:
    """Mend the interpreter, stand in for the device, watch builds."""
    builds = ExtensionBuilds(clock)
    if candidate.detector is not None:
        wrappers = Path.cwd() / "compilers"
        thread_races.write_wrappers(wrappers, Path(candidate.detector))
        environment.prefer_programs_in(wrappers)
        builds.compiler = (str(wrappers / Path(compiler.find()[0]).name), *compiler.find()[1:])
    emulation = emulated_extensions() if candidate.where == "interpreter" else None
    builds.header = None if candidate.header is None else Path(candidate.header)
    stand_in_for_builds(builds, device=candidate.where == "device", emulation=emulation)
    fill = getattr(ctypes.CDLL(None), "mallopt", None)  # of the GNU C library
    if fill is not None:
        fill(_FILL, _PATTERN)
    if candidate.where == "interpreter":
        from pipeline.backends.triton.interpretation.interpreter import interpret_unseen, mend

        mend()
        interpret_unseen()
        torch.compiler.set_stance("force_eager")  # its compiler would ask for the device, too
    if candidate.where == "device":
        stand_in_for_benchmarks(device(candidate.device).synchronize)
        return PreparedProcess(device_context=contextlib.nullcontext, builds=builds)
    device_context = fake_device(candidate.limits, shown=candidate.where == "interpreter")
    return PreparedProcess(device_context=device_context, builds=builds)
