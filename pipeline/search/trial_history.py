"""The history of a search: trials, from the outputs of compile, verify and profile in earlier rounds."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pipeline.records.errors import StoreError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import read_record
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.profiled import Profiled, ProfileOutput, ProfileRecord
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from pipeline.records.search.search_trial import StageOfTrial, Trial

StageRecord = TypeVar("StageRecord", CompileRecord, VerifyRecord, ProfileRecord)

ROUND_FILES = 3
"""Files per round: the outputs of compile, verify and profile, in this order."""


def read_history(paths: list[Path]) -> list[Trial]:
    """Trials of all earlier rounds: three files of each, as `ROUND_FILES` says.

    Raises
    ------
    StoreError
        The number of files is not a multiple of three, or one of them cannot be read.
    """
    if len(paths) % ROUND_FILES:
        raise StoreError(
            f"--history: expected compile, verify and profile of each earlier round, got {len(paths)} files"
        )
    trials: list[Trial] = []
    for start in range(0, len(paths), ROUND_FILES):
        compiled, verified, profiled = paths[start : start + ROUND_FILES]
        trials += trials_of(
            read_record(compiled, CompileOutput),
            read_record(verified, VerifyOutput),
            read_record(profiled, ProfileOutput),
        )
    return trials


def trials_of(compiled: CompileOutput, verified: VerifyOutput, profiled: ProfileOutput) -> Iterator[Trial]:
    """One round, in the order in which its variants were proposed."""
    verifies, profiles = _by_variant(verified.records), _by_variant(profiled.records)
    for record in compiled.records:
        identity = record.variant.id
        yield _trial(compiled.round, record, verifies.get(identity), profiles.get(identity))


def _trial(
    round_number: int, compiled: CompileRecord, verified: VerifyRecord | None, profiled: ProfileRecord | None
) -> Trial:
    stage: StageOfTrial = "profile" if profiled else "verify" if verified else "compile"
    last = profiled or verified or compiled
    failure = last.result if isinstance(last.result, Failure) else None
    measured = profiled.result if profiled and isinstance(profiled.result, Profiled) else None
    screening = profiled.screening if profiled else None
    return Trial(
        variant=compiled.variant,
        round=round_number,
        stage=stage,
        outcome=failure.outcome if failure else Outcome.PASSED,
        reason=failure.reason if failure else None,
        seconds=measured.time if measured else None,
        samples=measured.timing.samples if measured else (),
        screened=screening.time if screening else None,
        screened_on=screening.dimensions if screening else None,
        joules=measured.energy.joules if measured and measured.energy else None,
        error=verified.result.worst_error if verified and isinstance(verified.result, Verified) else None,
        facts=compiled.result.facts if isinstance(compiled.result, Compiled) else None,
        spent=sum(record.seconds for record in (compiled, verified, profiled) if record is not None),
        spent_joules=_spent_joules(measured),
    )


def _spent_joules(measured: Profiled | None) -> float | None:
    if measured is None or measured.energy is None or measured.energy.calls is None:
        return None
    return measured.energy.joules * measured.energy.calls


def _by_variant(records: Iterable[StageRecord]) -> Mapping[str, StageRecord]:
    return {record.variant.id: record for record in records}
