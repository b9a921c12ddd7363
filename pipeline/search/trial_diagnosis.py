"""Add the diagnosis to the trials of a search: what limits each variant."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pipeline.performance.diagnosis import diagnose
from pipeline.records.formula import evaluate_number
from pipeline.records.planning.specs import GenerateSpec, TaskRow
from pipeline.records.record import read_record
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import CompileOutput
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.verified import VerifyOutput
from pipeline.records.search.brief import Brief
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import constants_of
from pipeline.search.trial_history import ROUND_FILES


def diagnosed(trials: Sequence[Trial], files: Sequence[Path], spec: GenerateSpec) -> tuple[Trial, ...]:
    """The trials with the findings that the report would show.

    Raises
    ------
    StoreError
        An output cannot be read.
    """
    if spec.brief is None:
        return tuple(trials)
    row = _row(spec, spec.brief)
    findings = {result.id: diagnose(result, spec) for result in _results(row, files)}
    return tuple(
        msgspec.structs.replace(trial, diagnosis=findings.get(trial.variant.id, ())) for trial in trials
    )


def _results(row: TaskRow, files: Sequence[Path]) -> Iterator[Result]:
    for start in range(0, len(files), ROUND_FILES):
        paths = files[start : start + ROUND_FILES]
        compiled = read_record(paths[0], CompileOutput)
        verified = {each.variant.id: each for each in read_record(paths[1], VerifyOutput).records}
        profiled = {each.variant.id: each for each in read_record(paths[2], ProfileOutput).records}
        for record in compiled.records:
            identity = record.variant.id
            yield Result(
                task=row,
                round=compiled.round,
                variant=record.variant,
                id=identity,
                default=None,
                architecture=None,
                compile=record,
                verify=verified.get(identity),
                profile=profiled.get(identity),
            )


def _row(spec: GenerateSpec, brief: Brief) -> TaskRow:
    """The part of the task that a diagnosis reads."""
    names = constants_of(spec.problem, {})
    assert brief.cost.flops is not None and brief.cost.bytes is not None  # a kernel with sources has both
    traffic = evaluate_number(brief.cost.bytes, names)
    return TaskRow(
        task="",
        kernel=spec.kernel,
        workload="",
        hardware="",
        kind=brief.target.kind,
        device_present=True,
        optimization="",
        search="",
        rounds=spec.search.rounds,
        dtype=spec.problem.element,
        dimensions=spec.problem.dimensions,
        flops=evaluate_number(brief.cost.flops, names),
        bytes=traffic,
        read=traffic * spec.problem.input_share,
        unit=brief.cost.unit,
        peaks=brief.peaks,
        limits=brief.target.limits,
        generate="",
        compile="",
        verify="",
        profile="",
    )
