"""timing: the candidates of a problem that passed -> measurements against `Model`, on this machine's device.

In: a TimingSpec, and what judge wrote for the problem (JudgeOutput; only what passed is measured). Out: a
TimingOutput. Each measurement is stored at once, so that a run that was killed resumes, and one more
candidate costs only itself. If the device is absent, every candidate is `device_unavailable`.

    python -m pipeline.stages.timing --spec S.json --judged J.json --out O.json [--root artifacts]
"""

import argparse
import collections
import contextlib
import functools
import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.backends.cpp.extension_builds import may_build
from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest, read_record, to_json
from pipeline.records.results.judged import CandidateFile, JudgeOutput, Verdict
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.timed import (
    EstimatedBound,
    HeldOutTiming,
    TimedRecord,
    TimingOutput,
    TimingSpec,
    compared,
)
from pipeline.sandbox import stage_command
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.progress_messages import StageProgress
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record
from pipeline.store.integrity import discard, write_sealed
from pipeline.store.temporary import scratch_folder

if TYPE_CHECKING:
    from pipeline.measure.comparison.bench import Bench
    from pipeline.measure.hosting.measuring_messages import HostedModel

PASSED = frozenset({Outcome.PASSED, Outcome.PASSED_REDUCED})
"""What is timed. What was judged on reduced sizes is compared with `Model` on the declared ones when it is
timed; if these cannot be run in the time that there is, that is its outcome."""
TRANSIENT = frozenset({Outcome.UNSTABLE_TIMING})
"""Outcomes that may differ next time: not taken from the store."""
REDUCED_NOTE = "judged on reduced sizes; on the declared ones elements were compared with those of Model"
EAGER = "eager"
HELD_OUT = 2
"""Choices of sizes that the problem does not declare on which a candidate is measured that is faster than
`Model` on the declared ones,"""
HELD_OUT_TRIALS = 8
"""and of those that are tried: `Model` may not accept them."""


class _Subject(NamedTuple):
    """One candidate to be measured."""

    candidate: CandidateFile
    verdict: Verdict
    entry: str


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.timing", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="TimingSpec as JSON")
    parser.add_argument("--judged", type=Path, required=True, help="JudgeOutput as JSON")
    parser.add_argument("--out", type=Path, required=True, help="TimingOutput to write")
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    return stage_command.run(lambda: time_problem(options))


def time_problem(options: argparse.Namespace) -> None:
    """Measure what the store does not hold yet, one candidate after the other."""
    started = time.monotonic()
    spec = read_record(options.spec, TimingSpec)
    subjects = _subjects(spec, read_record(options.judged, JudgeOutput))
    bring_entries(options.root, "timing", (each.entry for each in subjects))
    found = {each.entry: _known(options.root, each.entry) for each in subjects}
    refused = {each.entry: _untimed(spec, each) for each in subjects if found[each.entry] is None}
    missing = [each for each in subjects if found[each.entry] is None and refused[each.entry] is None]
    known = [record for each in subjects if (record := found[each.entry] or refused[each.entry])]
    progress = StageProgress(options.out, len(subjects), known=[record.result for record in known])
    made = _measure_all(spec, missing, progress, options.root) if missing else {}
    records = tuple(
        _named(spec, each, found[each.entry] or refused[each.entry] or made[each.entry]) for each in subjects
    )
    write_sealed(options.out, to_json(TimingOutput(key=options.spec.stem, records=records)))
    stage_command.report(
        f"timing {spec.problem.name}",
        [record.result for record in records],
        cached=len(records) - len(missing),
        seconds=time.monotonic() - started,
        noun="candidate",
    )


def entry_of(spec: TimingSpec, candidate: CandidateFile) -> str:
    """Identity of a measurement: what its figures depend on, and no name."""
    return digest(
        {
            "problem": spec.problem.digest,
            "candidate": candidate.digest,
            "settings": [_unnamed(spec.settings), _unnamed(spec.held_out)],
            "device": [spec.target.kind, spec.device_present, spec.device],
            "build": spec.build,
        }
    )


def _unnamed(settings: Profile) -> Profile:
    return msgspec.structs.replace(settings, name="", description="")


def _subjects(spec: TimingSpec, judged: JudgeOutput) -> list[_Subject]:
    files = {each.name: each for each in spec.problem.candidates}
    return [
        _Subject(files[verdict.solution], verdict, entry_of(spec, files[verdict.solution]))
        for verdict in judged.verdicts
        if verdict.outcome in PASSED
    ]


def _known(root: Path, entry: str) -> TimedRecord | None:
    """The stored record, unless it is one that the next attempt may replace."""
    record = find_entry(root, "timing", entry, TimedRecord)
    if record is not None and isinstance(record.result, Failure) and record.result.outcome in TRANSIENT:
        discard(entry_path(root, "timing", entry))
        return None
    return record


def _untimed(spec: TimingSpec, subject: _Subject) -> TimedRecord | None:
    """What cannot be measured on this machine; not stored, because the device may be here next time."""
    reason = None
    if not spec.device_present:
        reason = f"no {spec.target.architecture} device on this machine"
    elif subject.verdict.where in ("interpreter", "emulator") and executes_on_host(spec.target.kind):
        reason = "its kernels run in an interpreter here: a time needs their device"
    if reason is None:
        return None
    failure = Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason=reason)
    return _record(spec, subject, failure, estimate=None, held_out=(), seconds=0.0)


def _named(spec: TimingSpec, subject: _Subject, record: TimedRecord) -> TimedRecord:
    return msgspec.structs.replace(record, problem=spec.problem.name, solution=subject.candidate.name)


def _record(  # noqa: PLR0913  (each is a field)
    spec: TimingSpec,
    subject: _Subject,
    result: Profiled | Failure,
    *,
    estimate: EstimatedBound | None,
    held_out: tuple[HeldOutTiming, ...],
    seconds: float,
) -> TimedRecord:
    return TimedRecord(
        problem=spec.problem.name,
        solution=subject.candidate.name,
        entry=subject.entry,
        result=result,
        estimate=estimate,
        held_out=held_out,
        seconds=round(seconds, 3),
        provenance=provenance(spec.build),
    )


def _measure_all(
    spec: TimingSpec, missing: list[_Subject], progress: StageProgress, root: Path
) -> dict[str, TimedRecord]:
    """One after the other; candidates, `Model` and the problem's code run in forked processes, never here.

    Of equal candidates one is measured.
    """
    alike = collections.Counter(each.entry for each in missing)
    subjects = list({each.entry: each for each in missing}.values())
    # Everyone constructs with one seed that no candidate knows before.
    seed = random.SystemRandom().getrandbits(31)
    with scratch_folder() as logs, _benches(spec, seed, root, logs) as benches:
        found = {}
        for subject, after in zip(subjects, [*subjects[1:], None], strict=True):
            record = _measure_one(_Place(spec, seed, root, benches), subject, after)
            progress.finished(record.result, count=alike[subject.entry])
            found[subject.entry] = record
        return found


class _Benches(NamedTuple):
    """Where all candidates of the problem are measured."""

    declared: "Bench"
    choices: list[dict[str, int]]
    """Other sizes that may be tried."""
    held_out: "Callable[[], list[tuple[dict[str, int], Bench]]]"
    """Those among them that are measured; made for the first candidate that needs them."""


@contextlib.contextmanager
def _benches(spec: TimingSpec, seed: int, root: Path, logs: Path) -> Iterator[_Benches]:
    from pipeline.measure.comparison.bench import Bench
    from pipeline.measure.comparison.bench_task import model_task
    from pipeline.measure.comparison.held_out_sizes import held_out_sizes
    from pipeline.sandbox.models.model_problem import ProblemSource

    names = {size.name: size.value for size in ProblemSource(Path(spec.problem.path)).sizes}
    choices = list(itertools.islice(held_out_sizes(names), HELD_OUT_TRIALS))
    with contextlib.ExitStack() as stack:
        declared = stack.enter_context(Bench(model_task(spec, spec.settings, {}, seed), root, logs))
        prepared = declared.prepare()
        for what, seconds in prepared.items():
            print(f"prepared {what} · {seconds:.1f} s", file=sys.stderr)

        @functools.cache
        def held_out() -> list[tuple[dict[str, int], Bench]]:
            found = _held_out_benches(declared, choices, spec, seed=seed, root=root, logs=logs)
            return [(sizes, stack.enter_context(bench)) for sizes, bench in found]

        yield _Benches(declared, choices, held_out)


def _held_out_benches(  # noqa: PLR0913
    declared: "Bench", choices: list[dict[str, int]], spec: TimingSpec, *, seed: int, root: Path, logs: Path
) -> "list[tuple[dict[str, int], Bench]]":
    """On the first sizes that `Model` accepts and that change what it does."""
    from pipeline.measure.comparison.bench import Bench
    from pipeline.measure.comparison.bench_task import model_task

    work = declared.counted()
    found: list[tuple[dict[str, int], Bench]] = []
    for sizes in choices if work else ():
        folder = logs / f"held-out-{len(found)}"
        folder.mkdir(exist_ok=True)
        bench = Bench(model_task(spec, spec.held_out, sizes, seed), root, folder, declared)
        if bench.counted() not in (None, work):
            found.append((sizes, bench))
        if len(found) == HELD_OUT:
            break
    return found


class _Place(NamedTuple):
    """Where a candidate is measured."""

    spec: TimingSpec
    seed: int
    root: Path
    benches: _Benches

    def hosted(self, subject: _Subject, sizes: dict[str, int]) -> "HostedModel":
        """What a measuring child hosts of a candidate."""
        from pipeline.measure.hosting.measuring_messages import HostedModel

        path = Path(subject.candidate.path)
        text = path.read_text(errors="replace")
        return HostedModel(
            problem=str(Path(self.spec.problem.path).absolute()),
            sizes=sizes,
            candidate=str(path.absolute()),
            builds=may_build(text),
            seed=self.seed,
        )


def _measure_one(place: _Place, subject: _Subject, after: _Subject | None) -> TimedRecord:
    """Measure one candidate and store the result at once; `after` is the one that comes next."""
    started = time.monotonic()
    declared = place.benches.declared
    with new_entry(place.root, "timing", subject.entry) as folder:
        # A process that was started ahead does not wait through the measurements on other sizes.
        next_one = None if place.benches.choices else after
        upcoming = None if next_one is None else place.hosted(next_one, {})
        result = _profiled(declared, place.hosted(subject, {}), folder, upcoming)
        held_out: tuple[HeldOutTiming, ...] = ()
        if isinstance(result, Profiled):
            result = _noted(result, subject)
            held_out = tuple(
                HeldOutTiming(sizes=sizes, result=_elsewhere(place, subject, sizes, bench, folder))
                for sizes, bench in (place.benches.held_out() if _may_lose(result) else ())
            )
        record = _record(
            place.spec,
            subject,
            result,
            estimate=declared.estimate(),
            held_out=held_out,
            seconds=time.monotonic() - started,
        )
        put_record(folder, record)
    # Another process may have been first: then its files are the ones that lie there, so its record counts.
    return find_entry(place.root, "timing", subject.entry, TimedRecord) or record


def _may_lose(result: Profiled) -> bool:
    """Whether other sizes can show anything: it is faster on the declared ones, or nobody knows."""
    eager = compared(result, EAGER)
    return eager is None or eager.verdict == "faster"


def _profiled(
    bench: "Bench", hosted: "HostedModel", folder: Path, upcoming: "HostedModel | None"
) -> Profiled | Failure:
    result = bench.profile(hosted, folder, upcoming)
    if machine_resources.is_doubtful(result, folder):  # only what happens twice is the candidate's
        machine_resources.require(folder)
        result = bench.profile(hosted, folder, upcoming)
    return result


def _elsewhere(
    place: _Place, subject: _Subject, sizes: dict[str, int], bench: "Bench", folder: Path
) -> Profiled | Failure:
    """On sizes that the problem does not declare; its rounds and its log are kept apart."""
    own = folder / "-".join(f"{name}_{value}" for name, value in sizes.items())
    own.mkdir()
    return bench.profile(place.hosted(subject, sizes), own)


def _noted(result: Profiled, subject: _Subject) -> Profiled:
    if subject.verdict.outcome is Outcome.PASSED:
        return result
    return msgspec.structs.replace(result, notes=(*result.notes, REDUCED_NOTE))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
