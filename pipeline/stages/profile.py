"""profile: verified variants -> measurements against the baselines, on the device in the machine.

In: a ProfileSpec, what verify wrote for one round (VerifyOutput; only what passed is measured) and what
compile wrote (CompileOutput, for the artifacts). Out: a ProfileOutput; every round's raw figures lie in one
store entry per variant. Where the device is absent, every variant is `device_unavailable`.

    python -m pipeline.stages.profile --spec S.json --verified V.json --compiled C.json --out O.json
        [--root artifacts]
"""

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.measure.ceilings.roofline_share import work_of
from pipeline.measure.comparison import screening
from pipeline.measure.measurement_identity import entry_digest
from pipeline.records.configuration.stage_settings import IMPLEMENTATION
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import Record, read_record
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.profiled import Profiled, ProfileOutput, ProfileRecord
from pipeline.records.results.verified import Verified, VerifyOutput
from pipeline.sandbox import stage_command
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.progress_messages import StageProgress
from pipeline.stages import optional
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record, require_entry
from pipeline.store.integrity import discard
from pipeline.store.outputs import put_output
from pipeline.store.stored_sources import require_sources, root_of
from pipeline.store.temporary import scratch_folder

if TYPE_CHECKING:
    from pipeline.measure.ceilings.roofline_share import WorkPerCall
    from pipeline.measure.comparison.bench import Bench
    from pipeline.measure.hosting.measuring_messages import Candidate

TRANSIENT = frozenset({Outcome.UNSTABLE_TIMING})
"""Outcomes that may differ next time: not taken from the store."""


PREPARED = "prepared "
"""How a line begins that tells what was done before the first variant was measured."""
WORTH_TELLING = 0.1  # seconds


class _Plan(Record, frozen=True, kw_only=True):
    """One variant to be measured."""

    compiled: CompileRecord
    entry: str


class _Verified(Record, frozen=True, kw_only=True):
    """What verified."""

    plans: tuple[_Plan, ...]
    defaults: dict[str, CompileRecord]
    """Default variants that are baselines, by implementation."""


class ProfileSubject(NamedTuple):
    """A variant to be measured outside of a round."""

    implementation: str
    candidate: "Candidate"
    work: "WorkPerCall"


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.profile", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="ProfileSpec as JSON")
    parser.add_argument("--verified", type=Path, required=True, help="VerifyOutput as JSON")
    parser.add_argument("--compiled", type=Path, required=True, help="CompileOutput as JSON")
    parser.add_argument("--out", type=Path, required=True, help="ProfileOutput to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: profile_round(options))


def profile_round(options: argparse.Namespace) -> None:
    """Measure what the store does not hold yet, one variant after the other."""
    started = time.monotonic()
    spec = read_record(options.spec, ProfileSpec)
    verified = read_record(options.verified, VerifyOutput)
    compiled = read_record(options.compiled, CompileOutput)
    share = screening.share_of(spec.screening, verified.round)
    if spec.recorded is not None:
        records, cached = optional.replay_profile(spec, spec.recorded, verified.records, share), 0
    else:
        records, cached = _round(spec, verified, compiled, options)
    output = ProfileOutput(key=options.spec.stem, round=verified.round, records=records)
    put_output(options.out, "profile", output, spec=options.spec)
    where = f"replayed ({spec.recorded.line})" if spec.recorded else f"on {spec.target.architecture}"
    if (shape := screening.smaller(spec, verified.round)) is not None:
        where += f", smaller shape {screening.told(shape)}"
    stage_command.report(
        f"profile {spec.problem.kernel} {where}",
        [record.result for record in records],
        cached=cached,
        seconds=time.monotonic() - started,
    )


def _round(
    spec: ProfileSpec, verified: VerifyOutput, compiled: CompileOutput, options: argparse.Namespace
) -> tuple[tuple[ProfileRecord, ...], int]:
    """A round's records, brief ones as what they are, and how many of them were in the store."""
    share, shape = screening.share_of(spec.screening, verified.round), screening.smaller(spec, verified.round)
    shorter = screening.brief(spec, verified.round)
    fitting, refused = screening.fitting(shorter, verified) if shape is not None else (verified, {})
    records, cached = _records(shorter, fitting, compiled, options)
    excluded = [
        _record(shorter, _Plan(compiled=each, entry=entry_digest(shorter, each, {})), why, 0.0)
        for each in compiled.records
        if (why := refused.get(each.variant.id)) is not None
    ]
    return (*(screening.screened(record, share, shape) for record in records), *excluded), cached


def _records(
    spec: ProfileSpec,
    verified: VerifyOutput,
    compiled: CompileOutput,
    options: argparse.Namespace,
) -> tuple[tuple[ProfileRecord, ...], int]:
    """The records of all that verified, and how many of them were in the store."""
    passed = _passed(spec, verified, compiled)
    plans = passed.plans
    bring_entries(options.root, "profile", (plan.entry for plan in plans))
    found = {plan.entry: _find(options.root, plan.entry) for plan in plans}
    missing = [plan for plan in plans if found[plan.entry] is None]
    if spec.device_present:
        needed = dict.fromkeys(plan.compiled.entry for plan in missing)
        for entry in needed | dict.fromkeys(record.entry for record in passed.defaults.values()):
            require_entry(options.root, "compile", entry, options.compiled)
        require_sources((plan.compiled.variant for plan in missing), options.root, options.compiled)
        made = _measure_all(spec, missing, passed.defaults, options) if missing else {}
    else:
        made = {plan.entry: _unavailable(spec, plan) for plan in missing}
    records = tuple(found[plan.entry] or made[plan.entry] for plan in plans)
    return records, len(records) - len(missing)


def _passed(spec: ProfileSpec, verified: VerifyOutput, compiled: CompileOutput) -> _Verified:
    by_variant = {record.variant.id: record for record in compiled.records}
    records = [by_variant[each.variant.id] for each in verified.records if isinstance(each.result, Verified)]
    defaults = {
        record.variant.implementation: record
        for record in records
        if f"{IMPLEMENTATION}{record.variant.implementation}" in spec.settings.baselines
        and _is_default(spec, record)
    }
    plans = tuple(_Plan(compiled=each, entry=entry_digest(spec, each, defaults)) for each in records)
    return _Verified(plans=plans, defaults=defaults)


def _is_default(spec: ProfileSpec, record: CompileRecord) -> bool:
    tunables = spec.implementations[record.variant.implementation].tunables
    defaults = {name: tunable.default for name, tunable in tunables.items()}
    return not record.variant.written and record.variant.tunables == defaults


def subjects(
    spec: ProfileSpec, verified: VerifyOutput, compiled: CompileOutput, root: Path
) -> "list[ProfileSubject]":
    """One variant of each implementation that verified: its default one, or else the first."""
    chosen: dict[str, CompileRecord] = {}
    for plan in _passed(spec, verified, compiled).plans:
        name = plan.compiled.variant.implementation
        if name not in chosen or _is_default(spec, plan.compiled):
            chosen[name] = plan.compiled
    return [
        ProfileSubject(implementation=name, candidate=_candidate(spec, record, root), work=work_of(spec))
        for name, record in chosen.items()
    ]


def _find(root: Path, entry: str) -> ProfileRecord | None:
    """The stored record, unless it is one that the next attempt may replace."""
    record = find_entry(root, "profile", entry, ProfileRecord)
    if record is not None and isinstance(record.result, Failure) and record.result.outcome in TRANSIENT:
        discard(entry_path(root, "profile", entry))
        return None
    return record


def _unavailable(spec: ProfileSpec, plan: _Plan) -> ProfileRecord:
    """Not stored: there is nothing to keep, and the device may be here next time."""
    reason = f"no {spec.target.architecture} device on this machine"
    return _record(spec, plan, Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason=reason), 0.0)


def _measure_all(
    spec: ProfileSpec, plans: list[_Plan], defaults: dict[str, CompileRecord], options: argparse.Namespace
) -> dict[str, ProfileRecord]:
    """One after the other; candidates and baselines run in forked processes, never here."""
    from pipeline.measure.comparison.bench import Bench
    from pipeline.measure.comparison.bench_task import kernel_task

    root: Path = options.root
    progress = StageProgress(options.out, len(plans))
    preload = {module for plan in plans for module in backend(plan.compiled.variant.backend).preload}
    for module in sorted(preload):
        importlib.import_module(module)
    hosted = {name: _candidate(spec, record, root) for name, record in defaults.items()}
    with (
        scratch_folder() as logs,
        Bench(kernel_task(spec, work_of(spec), hosted), root, logs) as bench,
    ):
        for what, seconds in bench.prepare().items():
            if seconds >= WORTH_TELLING:
                print(f"{PREPARED}{what} · {seconds:.1f} s", file=sys.stderr)
        upcoming = [*plans[1:], None]
        return {
            plan.entry: _measure_one(_Bench(spec, root, bench, progress), plan, after)
            for plan, after in zip(plans, upcoming, strict=True)
        }


class _Bench(NamedTuple):
    """Where all variants are measured."""

    spec: ProfileSpec
    root: Path
    bench: "Bench"
    progress: StageProgress

    def profile(self, plan: _Plan, after: _Plan | None, folder: Path) -> Profiled | Failure:
        upcoming = None if after is None else _candidate(self.spec, after.compiled, self.root)
        return self.bench.profile(_candidate(self.spec, plan.compiled, self.root), folder, upcoming)


def _measure_one(where: _Bench, plan: _Plan, after: _Plan | None) -> ProfileRecord:
    """Measure one variant and store the result at once; `after` is the one that comes next."""
    started = time.monotonic()
    with new_entry(where.root, "profile", plan.entry) as folder:
        result = where.profile(plan, after, folder)
        if machine_resources.is_doubtful(result, folder):  # only what happens twice is the candidate's
            machine_resources.require(folder)
            result = where.profile(plan, after, folder)
        record = _record(where.spec, plan, result, time.monotonic() - started)
        put_record(folder, record)
    where.progress.finished(record.result)
    # Another process may have been first: then its files are the ones that lie there, so its record counts.
    return find_entry(where.root, "profile", plan.entry, ProfileRecord) or record


def _candidate(spec: ProfileSpec, record: CompileRecord, root: Path) -> "Candidate":
    """What a measuring child hosts of a compiled variant."""
    from pipeline.measure.hosting.measuring_messages import Candidate

    assert isinstance(record.result, Compiled)
    job = CompileJob(
        variant=record.variant,
        implementation=spec.implementations[record.variant.implementation],
        problem=spec.problem,
        target=spec.target,
    )
    artifact = entry_path(root, "compile", record.entry).absolute()
    sources = root_of(record.variant, root)
    return Candidate(job=job, compiled=record.result, root=str(sources), folder=str(artifact))


def _record(spec: ProfileSpec, plan: _Plan, result: Profiled | Failure, seconds: float) -> ProfileRecord:
    variant = plan.compiled.variant
    return ProfileRecord(
        variant=variant,
        entry=plan.entry,
        result=result,
        seconds=seconds,
        provenance=provenance(spec.builds[variant.backend]),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
