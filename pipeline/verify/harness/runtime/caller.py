"""Calls the candidate's model once. In: `ForwardCall`. Out: `CallReply` or `RefusedReply`.

Outputs are copied before anything else happens, so that what is done after `forward` has returned comes too
late.
"""

import contextlib
import mmap
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import msgspec
import torch

from pipeline.backends.cpp.extension_builds import ExtensionBuilds
from pipeline.backends.cpp.thread_races import WatchedLibrary, watched_libraries
from pipeline.backends.devices.device import Device
from pipeline.records.record import Record
from pipeline.sandbox.observation import tensor_access
from pipeline.verify.harness.buffers import Slot
from pipeline.verify.harness.messages import CallReply, ForwardCall, OutputState, RefusalStage, RefusedReply
from pipeline.verify.harness.observer import Observer
from pipeline.verify.harness.observers import native_code
from pipeline.verify.harness.runtime.decoding import (
    ResultWriter,
    decode,
    describe,
    form_of,
    put_all,
    views,
)
from pipeline.verify.harness.runtime.device_memory import DeviceMemory
from pipeline.verify.harness.runtime.memory_protection import fenced, protected
from pipeline.verify.harness.runtime.refusal import refuse

_increment_version: Any = torch.autograd.graph.increment_version
_clock = time.perf_counter
_backward: Any = torch.autograd.backward
_enable_grad: Any = torch.enable_grad
_no_grad: Any = torch.no_grad


_KEPT_RESULTS = 4


class _Result(Record, frozen=True, kw_only=True, eq=False):
    """What came out, already copied."""

    structure: str
    values: list[Any]
    offsets: list[int | None]
    seconds: float


class Caller:
    """Calls the present model of a candidate."""

    def __init__(
        self,
        memory: mmap.mmap,
        device: Device,
        observer: Observer,
        builds: ExtensionBuilds,
        pause: Callable[[float], None],
    ) -> None:
        self._memory = memory
        self._device = device
        self._observer = observer
        self._builds = builds
        self._pause = pause
        self._kept: dict[Slot, torch.Tensor] = {}
        self._there: DeviceMemory | None = None
        self._earlier: list[tuple[torch.Tensor, tuple[int, int]]] = []
        self._libraries: dict[str, tuple[WatchedLibrary, ...]] = {}
        self.model: Any = None
        self.names: Mapping[str, str] = {}
        """Of its tensors -> of the reference's."""

    def call(self, message: ForwardCall) -> CallReply | RefusedReply:
        """Call it, and propagate gradients back where the judge asks for them."""
        inputs = self._inputs(message)
        writer = ResultWriter(self._memory, message.output_offset, message.output_bytes)
        places = {name: tensor_access.region(tensor) for name, tensor in inputs.items()}
        self._begin(message, inputs)
        libraries = self._watched(message.threads)
        stage: RefusalStage = "call"
        gradients: dict[str, torch.Tensor] = {}
        try:
            with self._around(message):
                result = self._forward(message, inputs, writer)
                stage = "backward"
                if message.interrupted:
                    kept = self._interrupt(message, inputs)  # noqa: F841  (alive until the backward)
                if message.gradients:
                    gradients = self._propagate(message, inputs, result.values)
        except BaseException as error:
            if message.suppress and isinstance(error, MemoryError):  # a size that its kernels would have made
                return RefusedReply(stage=stage, error="MemoryError", reason=str(error), nonce=message.nonce)
            return refuse(error, stage, message.nonce)
        outputs = self._outputs(result, inputs)
        reshaped = tuple(line for slot in message.inputs if (line := _reshaped(inputs[slot.name], slot)))
        reshaped += tuple(
            f"{name}: is at another address after the call"
            for name, tensor in inputs.items()
            if places[name] != tensor_access.region(tensor)
        )
        returned = self._gradients(gradients, writer)
        observed = self._observer.end([value for value in result.values if tensor_access.is_plain(value)])
        named = {**inputs, **_named(result.values)}
        races = tuple(race for library in libraries for race in library.take(named))
        observed = msgspec.structs.replace(
            observed, memory_faults=(*observed.memory_faults, *races), watched=bool(libraries)
        )
        done = CallReply(
            nonce=message.nonce,
            outputs=(),
            gradients=returned,
            structure=result.structure,
            reshaped=reshaped,
            overwrites=self._overwrites(result.values, (*inputs.values(), *self._weights().values())),
            observed=observed,
            seconds=result.seconds,
        )
        return self._settled(message, result, outputs, writer, done)

    def _watched(self, threads: int) -> tuple[WatchedLibrary, ...]:
        """The candidate's objects that find data races, with so many threads in the next call."""
        if self._builds.compiler is None:
            return ()
        for path in native_code.mapped():
            if path not in self._libraries:
                self._libraries[path] = watched_libraries([path])
        found = tuple(library for each in self._libraries.values() for library in each)
        for library in found:
            library.begin(threads)
        return found

    def _inputs(self, message: ForwardCall) -> dict[str, torch.Tensor]:
        """The tensors to call with: new objects, or those of an earlier call, which hold other values now.

        Who keeps results by object is met by values that it does not expect, as in a benchmark that fills its
        tensors anew; who keeps them by address, by other objects there.
        """
        if not self._device.is_host:
            return self._inputs_there(message)
        inputs = views(self._memory, message.inputs)
        if not message.same_objects:
            return inputs
        for slot in message.inputs:
            known = self._kept.setdefault(slot, inputs[slot.name])
            if known is inputs[slot.name] or _reshaped(known, slot):
                continue
            _increment_version(known)
            inputs[slot.name] = known
        return inputs

    def _inputs_there(self, message: ForwardCall) -> dict[str, torch.Tensor]:
        there = self._there
        reused = (
            message.same_objects
            and there is not None
            and there.slots == message.inputs
            and not any(_reshaped(there.tensors[slot.name], slot) for slot in there.slots)
        )
        if there is None or not reused:
            self._there = there = DeviceMemory(self._memory, message.inputs, self._device)
            return dict(there.tensors)
        there.fill()
        for tensor in there.tensors.values():
            _increment_version(tensor)
        return dict(there.tensors)

    def _begin(self, message: ForwardCall, inputs: Mapping[str, torch.Tensor]) -> None:
        self._observer.settle_pools(message.threads)
        self._observer.allocations.next_call()
        seed = zlib.crc32(message.nonce.encode())  # no two calls find the same random state
        weights = [tensor for name, tensor in self._weights().items() if name in self.names.values()]
        most = max((tensor_access.numel(each) for each in weights), default=0)
        large = [each for each in weights if 2 * tensor_access.numel(each) >= most]  # no bias, no scales
        self._observer.begin(inputs.values(), seed=seed, suppress=message.suppress, weights=large)
        if message.gradients:
            for _, parameter in self._parameters():
                parameter.grad = None
            for tensor in inputs.values():
                tensor.requires_grad_(tensor.is_floating_point())

    @contextmanager
    def _around(self, message: ForwardCall) -> Iterator[None]:
        shield = protected(self._memory, message.inputs) if message.protected else nullcontext()
        fence = fenced(self._memory, message.inputs) if message.fenced else nullcontext()
        with shield, fence, _enable_grad() if message.gradients else _no_grad(), self._observer.watching():
            yield
        if self._there is not None:
            self._there.fetch()

    def _forward(
        self, message: ForwardCall, inputs: Mapping[str, torch.Tensor], writer: ResultWriter
    ) -> _Result:
        arguments = [decode(value, inputs) for value in message.arguments]
        built, started = self._builds.seconds, _clock()
        result = self.model(*arguments)
        if self._device.is_host:
            ended = _clock()
        with self._observer.aside():
            structure, values = form_of(result)
            offsets = put_all(values, writer)
        if not self._device.is_host:
            ended = _clock()  # reading the outputs waited for the stream that they were computed on
        seconds = ended - started - (self._builds.seconds - built)
        return _Result(structure=structure, values=values, offsets=offsets, seconds=max(seconds, 0.0))

    def _interrupt(self, message: ForwardCall, inputs: Mapping[str, torch.Tensor]) -> Any:
        """What `forward` returns on the same values in another order; what it keeps belongs to that call.

        Where this order means nothing to the model, there is no result.
        """
        others = {
            name: tensor.detach().flip(0).requires_grad_()
            if tensor.is_floating_point() and tensor.dim()
            else tensor
            for name, tensor in inputs.items()
        }
        with contextlib.suppress(Exception):
            return self.model(*(decode(value, others) for value in message.arguments))
        return None

    def _propagate(
        self, message: ForwardCall, inputs: Mapping[str, torch.Tensor], values: Sequence[Any]
    ) -> dict[str, torch.Tensor]:
        """Gradients by name; what got none is left out."""
        given = {
            name: tensor.to(self._device.torch_device)
            for name, tensor in views(self._memory, message.output_gradients).items()
        }
        pairs = [
            (value, given[f"output gradient {number}"])
            for number, value in enumerate(values)
            if tensor_access.is_plain(value)
            and tensor_access.requires_grad(value)
            and f"output gradient {number}" in given
        ]
        if pairs:
            _backward([value for value, _ in pairs], [gradient for _, gradient in pairs])
        found = {f"gradient of {name}": tensor.grad for name, tensor in inputs.items()}
        for name, parameter in self._parameters():
            found[f"gradient of {self.names.get(name, name)}"] = parameter.grad
        return {name: gradient for name, gradient in found.items() if gradient is not None}

    def _overwrites(self, values: Sequence[Any], known: Iterable[torch.Tensor]) -> bool:
        """Whether a result of one of the last calls, which its caller may hold, has changed since.

        Results in the memory of inputs and weights change with those.
        """
        same = [(value, before) for value, before in self._earlier if tensor_access.digest(value) == before]
        changed = len(same) < len(self._earlier)
        self._earlier = same[-_KEPT_RESULTS:]
        places = {tensor_access.region(tensor)[0] for tensor in known}
        results = [value for value in values if tensor_access.is_plain(value) and tensor_access.numel(value)]
        own = [value for value in results if tensor_access.region(value)[0] not in places]
        self._earlier += [(value, tensor_access.digest(value)) for value in own]
        return changed

    def _outputs(self, result: _Result, inputs: Mapping[str, torch.Tensor]) -> list[OutputState]:
        known = {**inputs, **self._weights()}
        return [
            self._described(f"output {number}", value, offset, known)
            for number, (value, offset) in enumerate(zip(result.values, result.offsets, strict=True))
        ]

    def _weights(self) -> dict[str, torch.Tensor]:
        if not isinstance(self.model, torch.nn.Module):
            return {}
        with tensor_access.plainly():
            own = (*self._parameters(), *self.model.named_buffers())
            return {self.names.get(name, name): tensor for name, tensor in own}

    def _parameters(self) -> tuple[tuple[str, torch.nn.Parameter], ...]:
        return tuple(self.model.named_parameters()) if isinstance(self.model, torch.nn.Module) else ()

    def _gradients(
        self, gradients: Mapping[str, torch.Tensor], writer: ResultWriter
    ) -> tuple[OutputState, ...]:
        offsets = put_all(list(gradients.values()), writer)
        return tuple(
            self._described(name, gradient, offset, {})
            for (name, gradient), offset in zip(gradients.items(), offsets, strict=True)
        )

    def _described(
        self, name: str, value: Any, offset: int | None, known: Mapping[str, torch.Tensor]
    ) -> OutputState:
        allocations, place = self._observer.allocations, self._device.torch_device
        return describe(name, value, offset, place=place, known=known, allocations=allocations)

    def _settled(
        self,
        message: ForwardCall,
        result: _Result,
        outputs: Sequence[OutputState],
        writer: ResultWriter,
        done: CallReply,
    ) -> CallReply:
        """Wait, and look at the outputs again."""
        if message.settle:
            self._pause(message.settle)
        seen = zip(outputs, result.values, strict=True)
        return msgspec.structs.replace(
            done, outputs=tuple(_with_change(output, value, writer) for output, value in seen)
        )


def _named(values: Sequence[Any]) -> dict[str, torch.Tensor]:
    """Outputs by their names."""
    plain = ((number, value) for number, value in enumerate(values) if tensor_access.is_plain(value))
    return {f"output {number}": value for number, value in plain}


def _reshaped(tensor: torch.Tensor, slot: Slot) -> str:
    """What a tensor is called by now that was not given like that; empty where it is what it was."""
    with tensor_access.plainly():
        shape, strides = tuple(tensor_access.shape(tensor)), tuple(tensor_access.strides(tensor))
        kind = str(tensor_access.dtype(tensor)).removeprefix("torch.")
    if (shape, strides, kind) == (slot.shape, slot.strides, slot.dtype):
        return ""
    given = f"{slot.dtype} {slot.shape} with strides {slot.strides}"
    return f"{slot.name}: is {kind} {shape} with strides {strides} after the call, was {given}"


def _with_change(output: OutputState, value: Any, writer: ResultWriter) -> OutputState:
    if output.offset is None:
        return output
    with tensor_access.plainly():
        changed = not writer.holds(value, output.offset)
    return msgspec.structs.replace(output, changed_later=changed)
