"""Code of other rooms that only some tasks of a stage run: replay of recorded measurements, and pruning.

Identity does not follow the imports of this module (`pipeline.plan.identity.import_closure`). A task that
replays or prunes has the digest of that code in its own specs; every other task does not depend on it, so
editing a format of recorded measurements or a pruning rule leaves its binaries, verdicts and times valid.
"""

from collections.abc import Sequence
from pathlib import Path

from pipeline.records.configuration.pruning import PruningReasons, Scale
from pipeline.records.planning.specs import CompileSpec, ProfileSpec, VerifySpec
from pipeline.records.results.compiled import CompileRecord
from pipeline.records.results.profiled import ProfileRecord
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import VerifyRecord
from pipeline.records.search.recorded_space import RecordedFile


def replay_compile(
    spec: CompileSpec, file: RecordedFile, variants: Sequence[Variant], root: Path
) -> tuple[CompileRecord, ...]:
    """The records of compile, looked up in a file of recorded measurements."""
    from pipeline.interop.replay import compile_records

    return compile_records(spec, file, variants, root)


def replay_verify(
    spec: VerifySpec, file: RecordedFile, compiled: Sequence[CompileRecord]
) -> tuple[VerifyRecord, ...]:
    """The records of verify, looked up in a file of recorded measurements."""
    from pipeline.interop.replay import verify_records

    return verify_records(spec, file, compiled)


def replay_profile(
    spec: ProfileSpec, file: RecordedFile, verified: Sequence[VerifyRecord], share: float
) -> tuple[ProfileRecord, ...]:
    """The records of profile, looked up in a file of recorded measurements."""
    from pipeline.interop.replay import profile_records

    return profile_records(spec, file, verified, share)


def prune(spec: VerifySpec, records: Sequence[CompileRecord], scale: Scale | None) -> PruningReasons:
    """Which variants the search does not want verified, except for the share that is measured anyway."""
    if spec.prune is None:
        return PruningReasons(unwanted={}, undecided={})
    from pipeline.search.variant_pruning import is_measured_anyway, judge

    found = judge(spec, records, scale)
    variants = {each.variant.id: each.variant for each in records}
    anyway = frozenset(name for name, each in variants.items() if is_measured_anyway(each, spec.prune))
    return PruningReasons(unwanted=found.unwanted, undecided=found.undecided, measured_anyway=anyway)
