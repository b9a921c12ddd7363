"""verify: compiled variants -> verdicts.

In: a VerifySpec and what compile wrote for one round (CompileOutput; its failures are left out). Out: a
VerifyOutput; logs of candidates lie in one store entry per variant. A GPU target whose device is absent
is tried in the interpreter of its backend, on reduced shapes, and the record says so.

    python -m pipeline.stages.verify --spec S.json --compiled C.json --out O.json [--root artifacts]
"""

import argparse
import collections
import concurrent.futures
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.backends.registry import backend
from pipeline.records.configuration.pruning import PruningReasons
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.record import Record, read_record
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.verified import VerifyOutput, VerifyRecord
from pipeline.sandbox import stage_command
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.sandbox.progress_messages import StageProgress
from pipeline.stages import optional
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record, require_entry
from pipeline.store.outputs import put_output
from pipeline.store.stored_sources import require_sources, root_of
from pipeline.verify.harness.planning.preparation import (
    can_run,
    case_set_of,
    cases_of,
    interpreter_of,
    job_of,
    shapes_of,
    subject_of,
    verdict_digest,
    where_run,
    where_tried,
)
from pipeline.verify.harness.planning.shapes import Shape

if TYPE_CHECKING:
    from pipeline.verify.harness.kernel_trial import KernelTrialResult


NOT_PRUNED = PruningReasons(unwanted={}, undecided={})


class VerificationPlan(Record, frozen=True, kw_only=True):
    """One variant to be judged, and on which shapes."""

    compiled: CompileRecord
    shapes: tuple[Shape, ...]
    entry: str


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.verify", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="VerifySpec as JSON")
    parser.add_argument("--compiled", type=Path, required=True, help="CompileOutput as JSON")
    parser.add_argument("--out", type=Path, required=True, help="VerifyOutput to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    parser.add_argument(
        "--workers", type=int, default=len(os.sched_getaffinity(0)), help="candidates at once"
    )
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: verify_round(options))


def verify_round(options: argparse.Namespace) -> None:
    """Judge what the store does not hold yet, several candidates side by side."""
    started = time.monotonic()
    spec = read_record(options.spec, VerifySpec)
    compiled = read_record(options.compiled, CompileOutput)
    pruned = NOT_PRUNED
    if spec.recorded is not None:
        records, cached = optional.replay_verify(spec, spec.recorded, compiled.records), 0
    else:
        pruned = optional.prune(spec, compiled.records, compiled.scale)
        records, cached = _records(spec, compiled, pruned, options)
    output = VerifyOutput(
        key=options.spec.stem,
        round=compiled.round,
        records=records,
        unwanted=pruned.unwanted,
        undecided=pruned.undecided,
    )
    put_output(options.out, "verify", output, spec=options.spec)
    stage_command.report(
        f"verify {spec.problem.kernel} {_where(spec, records)}",
        [record.result for record in records],
        cached=cached,
        seconds=time.monotonic() - started,
    )
    for why, count in collections.Counter(pruned.undecided.values()).items():
        print(f"verify {spec.problem.kernel}: {count} not pruned by the bound: {why}", file=sys.stderr)


def _records(
    spec: VerifySpec, compiled: CompileOutput, pruned: PruningReasons, options: argparse.Namespace
) -> tuple[tuple[VerifyRecord, ...], int]:
    """The records of all that compiled, and how many of them were in the store."""
    every = [plan_of(spec, record) for record in compiled.records if isinstance(record.result, Compiled)]
    dropped = {plan.entry: why for plan in every if (why := _dropped(plan, pruned)) is not None}
    plans = [plan for plan in every if plan.entry not in dropped]
    bring_entries(options.root, "verify", (plan.entry for plan in plans))
    found = {plan.entry: find_entry(options.root, "verify", plan.entry, VerifyRecord) for plan in plans}
    missing = [plan for plan in plans if found[plan.entry] is None]
    require_sources((plan.compiled.variant for plan in missing), options.root, options.compiled)
    for plan in missing if where_run(spec) != "interpreter" else ():  # which runs the sources
        require_entry(options.root, "compile", plan.compiled.entry, options.compiled)
    made = _judge_all(spec, missing, options) if missing else {}
    records = tuple(
        _not_judged(spec, plan, dropped[plan.entry])
        if plan.entry in dropped
        else found[plan.entry] or made[plan.entry]
        for plan in every
    )
    return records, len(plans) - len(missing)


def _dropped(plan: VerificationPlan, pruned: PruningReasons) -> str | None:
    """Why the search does not want a variant measured, unless it is among those that show what this loses."""
    variant = plan.compiled.variant
    return None if variant.id in pruned.measured_anyway else pruned.unwanted.get(variant.id)


def _not_judged(spec: VerifySpec, plan: VerificationPlan, reason: str) -> VerifyRecord:
    """Not stored: nothing was found out about it."""
    variant = plan.compiled.variant
    return VerifyRecord(
        variant=variant,
        entry=plan.entry,
        result=Failure(outcome=Outcome.PRUNED, reason=reason),
        where=where_run(spec),
        checks=(),
        shapes=(),
        seeds=(),
        seconds=0.0,
        provenance=provenance(spec.builds[variant.backend]),
    )


def _where(spec: VerifySpec, records: tuple[VerifyRecord, ...]) -> str:
    """For the line that reports: target and device, stand-ins of an absent one by name."""
    target = f"for {spec.target.architecture}"
    if spec.recorded is not None:
        return f"replayed ({spec.recorded.line})"
    if where_run(spec) != "interpreter":
        return f"{target} on {where_run(spec)}"
    return (
        f"{target} in the {' and the '.join(sorted({record.where for record in records}) or ['interpreter'])}"
    )


def plan_of(spec: VerifySpec, compiled: CompileRecord) -> VerificationPlan:
    """The shapes to judge it on, and the identity of the verdict."""
    shapes = shapes_of(spec, compiled.variant)
    return VerificationPlan(compiled=compiled, shapes=shapes, entry=verdict_digest(spec, compiled, shapes))


def _judge_all(
    spec: VerifySpec, plans: list[VerificationPlan], options: argparse.Namespace
) -> dict[str, VerifyRecord]:
    """Threads of this process judge, each with a candidate in a forked process."""
    from pipeline.verify.harness import process  # noqa: F401  (with torch: imported here, it costs no child anything)
    from pipeline.verify.harness.conventions import outputs_given  # noqa: F401  (likewise)
    from pipeline.verify.harness.session import DEVICE_CANDIDATES

    preload: list[str] = []
    environment: dict[str, str] = {}
    for name in sorted({plan.compiled.variant.backend for plan in plans}):
        interpreter = interpreter_of(spec, name)
        if interpreter is None:
            preload += (*backend(name).preload, *backend(name).device_preload)
        else:
            environment |= interpreter.environment
            preload += interpreter.preload
    progress = StageProgress(options.out, len(plans), time_limit=spec.settings.time_limit)
    # Forked before this process computes anything: a child inherits no thread pool and no expected value.
    with ForkServer(preload=preload, environment=environment) as server:
        judge = _Judge(spec, server, options.root, progress)
        on_host = where_run(spec) == "interpreter" or executes_on_host(spec.target.kind)
        at_once = options.workers if on_host else DEVICE_CANDIDATES
        workers = min(options.workers, at_once, len(plans))
        with _one_torch_thread():
            records = _all_verdicts(judge, plans, workers)
    return {record.entry: record for record in records}


def _all_verdicts(judge: "_Judge", plans: list[VerificationPlan], workers: int) -> list[VerifyRecord]:
    """Verdicts in order; the first exception (a bug, or an error of the user's) leaves the rest undone."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(judge.verdict, plan) for plan in plans]
        try:
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _one_torch_thread() -> Iterator[None]:
    """For each judge, as there are several; and no thread pool that a later fork would break."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Judge:
    """Holds what all variants of the job share."""

    def __init__(self, spec: VerifySpec, server: ForkServer, root: Path, progress: StageProgress) -> None:
        from pipeline.verify.oracle.random_inputs import draw_seeds

        self._progress = progress
        self._spec = spec
        self._server = server
        self._root = root
        self._seeds = draw_seeds(spec.settings.seeds)
        self._case_set = case_set_of(spec, self._seeds)

    def verdict(self, plan: VerificationPlan) -> VerifyRecord:
        """Judge one variant and store the verdict at once."""
        started = time.monotonic()
        variant = plan.compiled.variant
        with new_entry(self._root, "verify", plan.entry) as folder:
            trial = self._try_surely(plan, folder)
            shapes = dict.fromkeys(msgspec.json.encode(case.shape.dimensions) for case in trial.cases)
            record = VerifyRecord(
                variant=variant,
                entry=plan.entry,
                result=trial.result,
                isolation=trial.isolation,
                where=where_tried(self._spec, variant.backend),
                checks=trial.checks,
                shapes=tuple(msgspec.json.decode(shape) for shape in shapes),
                seeds=self._seeds,
                seconds=time.monotonic() - started,
                provenance=provenance(self._spec.builds[variant.backend]),
            )
            put_record(folder, record)
        self._progress.finished(record.result)
        return find_entry(self._root, "verify", plan.entry, VerifyRecord) or record

    def _try_surely(self, plan: VerificationPlan, folder: Path) -> "KernelTrialResult":
        """Once more where the machine may be to blame: only what happens twice is the candidate's."""
        trial = self._try(plan, folder)
        if machine_resources.is_doubtful(trial.result, folder):
            machine_resources.require(folder)
            trial = self._try(plan, folder)
        return trial

    def _try(self, plan: VerificationPlan, folder: Path) -> "KernelTrialResult":
        from pipeline.verify.harness.kernel_trial import LOG, RACE_LOG, KernelTrialResult, try_variant

        spec, variant = self._spec, plan.compiled.variant
        if not can_run(spec, variant.backend):
            reason = (
                f"no {spec.target.kind} device here, and the backend {variant.backend} has no interpreter"
            )
            return KernelTrialResult(
                result=Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason=reason), checks=(), cases=()
            )
        assert isinstance(plan.compiled.result, Compiled)
        compiled_in = entry_path(self._root, "compile", plan.compiled.entry).absolute()
        subject = subject_of(
            spec,
            job_of(spec, variant),
            plan.compiled.result,
            root=root_of(variant, self._root),
            folder=compiled_in,
        )
        cases = cases_of(spec, self._case_set, plan.shapes)
        trial = try_variant(self._server, subject, self._case_set, cases, folder)
        for log in (folder / LOG, folder / RACE_LOG):
            if log.is_file() and log.stat().st_size == 0:
                log.unlink()
        return trial


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
