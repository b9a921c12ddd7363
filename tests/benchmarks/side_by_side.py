"""Verified variants against one of them, side by side. In: a store, a profile spec. Out: speeds."""

import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pipeline.backends.backend import CompileJob
from pipeline.measure.ceilings.roofline_share import work_of
from pipeline.measure.comparison.bench import Bench
from pipeline.measure.comparison.bench_task import kernel_task
from pipeline.measure.comparison.round_summary import Unstable
from pipeline.measure.hosting.measuring_messages import Candidate
from pipeline.measure.hosting.process_handle import MemberGone
from pipeline.records.layout import entry_path
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.results.compiled import Compiled, CompileRecord
from pipeline.records.results.profiled import ConfidenceInterval
from tests.benchmarks.figures import ROOT

TIMES = 3
"""Pairs of processes for each variant: two processes of the same code differ by about 1 % for as long as they
live (`pipeline.measure.statistics.RESOLUTION`)."""
SPARE = 2
"""Further attempts, where something breaks down or scatters beyond use."""
PRECISE = {
    "baselines": (),
    "seconds_per_variant": 2.0,
    "batches_at_least": 30,
    "batches_at_most": 200,
    "relative_half_width": 0.01,
    "warmup_seconds": 0.1,
    "time_limit": 120.0,
}
"""What differs from the settings of the sweep: the winners are few, and may take longer."""


class SideBySide:
    """The bench of one task, for its compiled variants."""

    def __init__(self, store: Path, spec: ProfileSpec, compiled: Iterable[CompileRecord]) -> None:
        self._store = store
        self._spec = msgspec.structs.replace(
            spec, settings=msgspec.structs.replace(spec.settings, **PRECISE), screening=()
        )
        self._compiled: Mapping[str, CompileRecord] = {each.variant.id: each for each in compiled}

    def speeds(self, variants: Iterable[str], reference: str) -> dict[str, ConfidenceInterval]:
        """Speed of each variant over the reference's; that of the reference over itself is 1 by definition.

        One that cannot be measured so often is left out.
        """
        others = [each for each in dict.fromkeys(variants) if each != reference]
        found = {reference: ConfidenceInterval(value=1.0, low=1.0, high=1.0, confidence=1.0)}
        with (
            tempfile.TemporaryDirectory(prefix="km-") as logs,
            Bench(kernel_task(self._spec, work_of(self._spec), {}), self._store, Path(logs)) as bench,
        ):
            for variant in others:
                repeats = self._repeats(bench, variant, reference, Path(logs))
                if len(repeats) == TIMES:
                    found[variant] = widest(repeats)
        return found

    def _repeats(self, bench: Bench, variant: str, reference: str, logs: Path) -> list[ConfidenceInterval]:
        pair = self._candidate(variant), self._candidate(reference)
        repeats: list[ConfidenceInterval] = []
        for _ in range(TIMES + SPARE):
            try:
                repeats.append(bench.against(*pair, logs).comparisons[0].speedup)
            except (MemberGone, Unstable) as error:
                print(f"{variant}: {error}", file=sys.stderr)
            if len(repeats) == TIMES:
                break
        return repeats

    def _candidate(self, variant: str) -> Candidate:
        record = self._compiled[variant]
        assert isinstance(record.result, Compiled)
        job = CompileJob(
            variant=record.variant,
            implementation=self._spec.implementations[record.variant.implementation],
            problem=self._spec.problem,
            target=self._spec.target,
        )
        folder = entry_path(self._store, "compile", record.entry).absolute()
        return Candidate(job=job, compiled=record.result, root=str(ROOT), folder=str(folder))


def widest(repeats: list[ConfidenceInterval]) -> ConfidenceInterval:
    """The median of repeated comparisons, and an interval that holds all of theirs."""
    middle = sorted(repeats, key=lambda each: each.value)[len(repeats) // 2]
    return msgspec.structs.replace(
        middle, low=min(each.low for each in repeats), high=max(each.high for each in repeats)
    )
