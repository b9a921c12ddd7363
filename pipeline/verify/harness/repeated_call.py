"""Repeats the call that failed, in this process, so that a debugger can look at it.

In: the `FailedCall` that a verdict left in its store entry. Out: what is wrong with the result now. The
inputs, their addresses relative to each other, the weights and the number of threads are those of the failed
call, and so are the candidate's own builds, which find data races if they did so there. A candidate that
keeps something from call to call fails only after the calls before, which can be made again as well. Nothing
isolates or observes the candidate, because both would be in a debugger's way.
"""

import contextlib
import functools
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from pipeline.backends.backend import MemoryFault, MemorySpan
from pipeline.backends.cpp import thread_races
from pipeline.backends.cpp.thread_races import watched_libraries
from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend, candidate_backends
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.sandbox.models.candidate_import import import_file
from pipeline.sandbox.models.model_problem import ModelProblem
from pipeline.sandbox.models.weight_transfer import transfer_weights
from pipeline.sandbox.observation import tensor_access
from pipeline.store.temporary import scratch_folder
from pipeline.verify.checks.late_writes import late_failure
from pipeline.verify.checks.memory import memory_failure
from pipeline.verify.checks.model_calls import overwritten_result, values, wrong_shape
from pipeline.verify.harness.buffers import Slot
from pipeline.verify.harness.conventions.outputs_returned import PreparedProcess, instantiate, prepare
from pipeline.verify.harness.encoding import place
from pipeline.verify.harness.failed_call import FailedCall
from pipeline.verify.harness.messages import ModelFile, WeightUpdate
from pipeline.verify.harness.model_cases import ModelCase, oracle_for
from pipeline.verify.harness.observers import native_code
from pipeline.verify.harness.planning.case_plans import CasePlan, CasePlanner
from pipeline.verify.harness.planning.trial_conditions import MadeCall
from pipeline.verify.harness.proxy import CandidateMemory, differing, layout_for
from pipeline.verify.harness.runtime.decoding import decode, form_of

_SLOWNESS = 10  # times as long as the trial waited for late writes: a first call, or a debugger, takes longer


class RepeatedCall:
    """One failed call, made again."""

    def __init__(self, failed: FailedCall) -> None:
        self.failed = failed
        settings = failed.settings
        problem = ModelProblem(Path(failed.problem))
        self._planner = CasePlanner(problem, strict_strides=settings.strict_strides, kind=failed.device)
        self._oracle = oracle_for(self._planner, problem.tolerance, settings)

    def alone(self) -> Failure | None:
        """Without the calls before it; an exception of the candidate's is left to the debugger."""
        return self._run(self.failed.calls[-1:])

    def in_sequence(self) -> Failure | None:
        """After all calls before it, by a candidate that is imported anew."""
        return self._run(self.failed.calls)

    @functools.cached_property
    def _prepared(self) -> PreparedProcess:
        failed = self.failed
        instrumented = any(call.options.instrumented for call in failed.calls)
        file = ModelFile(
            source=failed.candidate,
            where=failed.where,
            device=failed.device,
            limits=failed.limits,
            detector=str(thread_races.detector()) if instrumented else None,
        )
        return prepare(file, time.perf_counter)

    def _run(self, calls: Sequence[MadeCall]) -> Failure | None:
        plans = {call.condition.label: self._oracle.plan(call.condition) for call in calls}
        if calls:  # bounds depend on the steps that `Model` makes on its own sizes, which came first
            self._oracle.case(self._oracle.plan(self.failed.calls[0].condition))
        case = self._oracle.case(plans[calls[-1].condition.label]) if calls else None
        torch.set_num_threads(calls[-1].options.threads if calls else 1)
        here = Path.cwd()
        with scratch_folder() as scratch:
            os.chdir(scratch)
            try:
                with self._prepared.device_context():
                    module = import_file(Path(self.failed.candidate), Path(self.failed.candidate))
                if case is None:
                    return None
                with _CalledModel(module, self._prepared, self.failed.device, plans) as model:
                    for call in calls[:-1]:
                        with contextlib.suppress(Exception):  # sizes that it was free to refuse
                            model.call(call)
                    return _judged(case, model.call(calls[-1]))
            finally:
                os.chdir(here)


class _Called(Record, frozen=True, kw_only=True, eq=False):
    """One call as far as it can be seen without observers."""

    result: Any
    late: tuple[int, ...]
    """Numbers of the outputs that changed after it had returned."""
    overwrites: bool
    """Whether a result of an earlier call changed."""
    mutated: Mapping[str, torch.Tensor]
    trespass: str | None
    races: tuple[MemoryFault, ...]


class _CalledModel:
    """The present model of a candidate, called with tensors at the addresses that a trial gives them."""

    def __init__(
        self, module: Any, prepared: PreparedProcess, kind: DeviceKind, plans: Mapping[str, CasePlan]
    ) -> None:
        self._module = module
        self._prepared = prepared
        self._torch_device = device(kind).torch_device
        self._plans = plans
        self._layout = layout_for(plans.values(), gradients=False)
        self._memory = CandidateMemory(self._layout.size)
        self._model: Any = None
        self._identity = ""
        self._objects: dict[Slot, torch.Tensor] = {}
        self._seen: set[str] = set()
        self._spans: list[MemorySpan] = []
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []
        """With copies of what they were."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.__exit__(None, None, None)

    def call(self, call: MadeCall) -> _Called:
        """Construct the model for it, unless the present one will do, and call it."""
        plan, options = self._plans[call.condition.label], call.options
        if plan.identity != self._identity:
            self._construct(plan, call.update)
        tensors = plan.encoded.tensors
        start = self._layout.inputs + options.shift
        slots, _ = place(tensors, start, flush=options.fenced, lead=options.lead)
        self._memory.put(slots, tensors)
        inputs = {slot.name: self._input(slot, same=options.same_objects) for slot in slots}
        given = [decode(each, inputs) for each in plan.encoded.values]
        self._watch_extensions(inputs)
        torch.set_num_threads(options.threads)
        with torch.no_grad(), self._prepared.device_context():
            if options.instrumented:
                self._model(*given)  # may build and load what is watched in the next call
            watched = watched_libraries(native_code.mapped()) if options.instrumented else ()
            for library in watched:
                library.begin(options.threads)
            with self._memory.limited(slots, options):
                result = self._model(*given)
        races = tuple(race for library in watched for race in library.take(inputs))
        late, overwrites = self._changes(result, inputs, options.settle)
        mutated, trespass = self._memory.changes()
        return _Called(
            result=result, late=late, overwrites=overwrites, mutated=mutated, trespass=trespass, races=races
        )

    def _watch_extensions(self, inputs: Mapping[str, torch.Tensor]) -> None:
        """Those that are loaded, if their kernels are emulated."""
        regions = {name: tensor_access.region(tensor) for name, tensor in inputs.items()}
        self._spans = [
            MemorySpan(name=name, start=start, size=size, itemsize=inputs[name].element_size(), guarded=True)
            for name, (start, size) in regions.items()
        ]
        for path in native_code.mapped():
            if path not in self._seen:
                self._seen.add(path)
                for name in candidate_backends():
                    backend(name).watch_extension(path, lambda: self._spans)

    def _construct(self, plan: CasePlan, update: WeightUpdate | None) -> None:
        """Or give the present one the weights, if the trial did so."""
        given = {name: tensor.clone() for name, tensor in {**plan.initial.tensors, **plan.state}.items()}
        state = {name: given[name] for name in plan.state}
        with self._prepared.device_context():
            if update is None:
                initial = [decode(each, given) for each in plan.initial.values]
                self._model = instantiate(self._module, plan.condition.weights, initial, self._torch_device)
            elif update == "load_state_dict":
                self._model.load_state_dict(state, strict=False)
            transfer_weights(self._model, state)
        self._identity = plan.identity

    def _input(self, slot: Slot, *, same: bool) -> torch.Tensor:
        tensor = self._memory.view(slot).to(self._torch_device)
        return self._objects.setdefault(slot, tensor) if same else tensor

    def _changes(
        self, result: Any, inputs: Mapping[str, torch.Tensor], settle: float
    ) -> tuple[tuple[int, ...], bool]:
        """Outputs that change after the return, and whether earlier ones did."""
        outputs = [each for each in form_of(result)[1] if isinstance(each, torch.Tensor)]
        copies = [each.detach().clone() for each in outputs]
        late, until = _changed(outputs, copies), time.monotonic() + _SLOWNESS * settle
        while not late and time.monotonic() < until:
            time.sleep(settle)
            late = _changed(outputs, copies)
        overwrites = bool(_changed(*zip(*self._results, strict=True))) if self._results else False
        # What lies in an input's memory changes with that.
        places = {each.untyped_storage().data_ptr() for each in inputs.values()}
        self._results = [
            (now, before)
            for now, before in zip(outputs, copies, strict=True)
            if now.untyped_storage().data_ptr() not in places
        ]
        return late, overwrites


def _changed(outputs: Sequence[torch.Tensor], copies: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Numbers of those that are not what they were."""
    pairs = enumerate(zip(outputs, copies, strict=True))
    return tuple(number for number, (now, before) in pairs if differing([now.detach()], [before]))


def _judged(case: ModelCase, called: _Called) -> Failure | None:
    """The first thing that is wrong."""
    seen = (fault for name in candidate_backends() for fault in backend(name).take_memory_faults())
    faults = (*seen, *called.races)
    if faults:
        return memory_failure(faults)
    if called.trespass is not None:
        return Failure(outcome=Outcome.OUT_OF_BOUNDS, reason=called.trespass)
    changed = [name for name in called.mutated if name not in case.plan.mutated]
    if changed:
        return Failure(outcome=Outcome.INPUT_MUTATED, reason=f"{', '.join(changed)}: changed")
    _, outputs = form_of(called.result)
    wanted = [(each.shape, each.dtype) for each in case.plan.outputs]
    got = [(tuple(each.shape), str(each.dtype).removeprefix("torch.")) for each in outputs]
    if got != wanted:
        return wrong_shape(f"returned {got}, expected {wanted}")
    if called.late or called.overwrites:
        return late_failure(f"output {called.late[0]}") if called.late else overwritten_result()
    judged = values(case, [each.detach().cpu() for each in outputs])
    return judged if isinstance(judged, Failure) else None
