"""Repeats the call that failed, in this process, so that a debugger can look at it.

In: the `FailedCall` that a verdict left in its store entry. Out: what is wrong with the result now. The
inputs, the alignment of their addresses, the weights and the number of threads are those of the failed call,
and so are the candidate's own builds, which find data races if they did so there.
Nothing isolates or observes the candidate, because both would be in a debugger's way.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pipeline.backends.backend import MemoryFault
from pipeline.backends.cpp import thread_races
from pipeline.backends.cpp.thread_races import watched_libraries
from pipeline.backends.devices.device_registry import device
from pipeline.backends.registry import backend, candidate_backends
from pipeline.records.outcome import Failure, Outcome
from pipeline.store.temporary import scratch_folder
from pipeline.verify.candidates.model_problem import ModelProblem
from pipeline.verify.checks.memory import memory_failure
from pipeline.verify.checks.model_calls import values, wrong_shape
from pipeline.verify.harness.conventions.outputs_returned import PreparedProcess, instantiate, prepare
from pipeline.verify.harness.encoding import place
from pipeline.verify.harness.failed_call import FailedCall
from pipeline.verify.harness.messages import ModelFile
from pipeline.verify.harness.model_cases import ModelCase, oracle_for
from pipeline.verify.harness.observers import native_code
from pipeline.verify.harness.planning.case_plans import CasePlanner
from pipeline.verify.harness.planning.trial_conditions import Condition
from pipeline.verify.harness.proxy import CandidateMemory
from pipeline.verify.harness.runtime.candidate_import import import_file
from pipeline.verify.harness.runtime.decoding import decode, form_of
from pipeline.verify.harness.runtime.weight_transfer import transfer_weights


class RepeatedCall:
    """One failed call, made again."""

    def __init__(self, failed: FailedCall) -> None:
        self.failed = failed

    def run(self) -> Failure | None:
        """Make the call; an exception of the candidate's is left to the debugger."""
        failed = self.failed
        case = None if failed.condition is None else self._case(failed.condition)
        torch.set_num_threads(failed.options.threads)
        here = Path.cwd()
        with scratch_folder() as scratch:
            os.chdir(scratch)
            try:
                file = ModelFile(
                    source=failed.candidate,
                    where=failed.where,
                    device=failed.device,
                    limits=failed.limits,
                    detector=str(thread_races.detector()) if failed.options.instrumented else None,
                )
                prepared = prepare(file, time.perf_counter)
                with prepared.device_context():
                    module = import_file(Path(failed.candidate), Path(failed.candidate))
                    return None if case is None else self._called(module, case, prepared)
            finally:
                os.chdir(here)

    def _case(self, condition: Condition) -> ModelCase:
        settings = self.failed.settings
        problem = ModelProblem(Path(self.failed.problem))
        planner = CasePlanner(problem, strict_strides=settings.strict_strides)
        oracle = oracle_for(planner, problem.tolerance, settings)
        return oracle.case(oracle.plan(condition))

    def _called(self, module: Any, case: ModelCase, prepared: PreparedProcess) -> Failure | None:
        plan, options = case.plan, self.failed.options
        torch_device = device(self.failed.device).torch_device
        given = {name: tensor.clone() for name, tensor in {**plan.initial.tensors, **plan.state}.items()}
        initial = [decode(each, given) for each in plan.initial.values]
        model = instantiate(module, plan.condition.weights, initial, torch_device)
        transfer_weights(model, {name: given[name] for name in plan.state})
        tensors = plan.encoded.tensors
        slots, end = place(tensors, options.shift, flush=options.fenced, lead=options.lead)
        with CandidateMemory(end) as memory:
            memory.put(slots, tensors)
            inputs = {slot.name: memory.view(slot).to(torch_device) for slot in slots}
            with torch.no_grad(), prepared.device_context():
                values_given = [decode(each, inputs) for each in plan.encoded.values]
                if options.instrumented:
                    model(*values_given)  # may build and load what is watched in the next call
                watched = watched_libraries(native_code.mapped()) if options.instrumented else ()
                for library in watched:
                    library.begin(options.threads)
                result = model(*values_given)
            races = tuple(race for library in watched for race in library.take(inputs))
            mutated, trespass = memory.changes()
        return _judged(case, result, mutated, trespass, races)


def _judged(
    case: ModelCase,
    result: Any,
    mutated: Mapping[str, torch.Tensor],
    trespass: str | None,
    races: tuple[MemoryFault, ...],
) -> Failure | None:
    """The first thing that is wrong."""
    seen = (fault for name in candidate_backends() for fault in backend(name).take_memory_faults())
    faults = (*seen, *races)
    if faults:
        return memory_failure(faults)
    if trespass is not None:
        return Failure(outcome=Outcome.OUT_OF_BOUNDS, reason=trespass)
    changed = [name for name in mutated if name not in case.plan.mutated]
    if changed:
        return Failure(outcome=Outcome.INPUT_MUTATED, reason=f"{', '.join(changed)}: changed")
    _, outputs = form_of(result)
    wanted = [(each.shape, each.dtype) for each in case.plan.outputs]
    got = [(tuple(each.shape), str(each.dtype).removeprefix("torch.")) for each in outputs]
    if got != wanted:
        return wrong_shape(f"returned {got}, expected {wanted}")
    judged = values(case, [each.detach().cpu() for each in outputs])
    return judged if isinstance(judged, Failure) else None
