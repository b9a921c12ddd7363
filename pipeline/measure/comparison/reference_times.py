"""The state of the device that times refer to. In: a task, comparisons. Out: a baseline's first time.

The machine is faster at one time than at another, by half and more. A baseline that runs in turn with every
variant shows by how much. What it took when the problem was first measured on the device is kept, and all
later times are reduced to that state (`Profiled.time`), so they compare across variants, rounds and tasks.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from pipeline.measure.comparison.bench_task import BenchTask
from pipeline.records.errors import StoreError
from pipeline.records.record import Record, digest, read_record, to_json
from pipeline.records.results.profiled import Comparison, ReferenceTime
from pipeline.store.atomic import write_atomic

WORTH_A_NOTE = 0.1
"""Relative drift from which on a measurement says so."""


_TIMED = 2
"""Raise it when calls are timed in another way: times of before would be taken for a drift."""


class BaselineTimes(Record, frozen=True, kw_only=True):
    """Baseline -> seconds of a call when it was first measured."""

    seconds: dict[str, float] = {}


class ReferenceTimes:
    """Those of one problem on one device, kept in a folder of the artifacts."""

    def __init__(self, folder: Path, task: BenchTask) -> None:
        settings = task.settings
        identity = {
            "timed": _TIMED,
            "problem": task.identity,
            "device": [task.kind, task.device],
            "settings": [settings.mode, settings.idle_seconds, settings.flush_cache, settings.cuda_graph],
            "torch": version("torch"),
        }
        self._path = folder / f"{digest(identity)}.json"

    def of(self, comparisons: Sequence[Comparison]) -> ReferenceTime | None:
        """The reference of a measurement: of its first baseline that has one, which the first one gets."""
        known = self._known()
        usable = [each for each in comparisons if each.baseline in known] or comparisons[:1]
        if not usable:
            return None
        first = usable[0]
        reference = ReferenceTime(
            baseline=first.baseline, seconds=known.get(first.baseline, first.timing.median.value)
        )
        drift = first.timing.median.value / reference.seconds
        new = {each.baseline: each.timing.median.value / drift for each in comparisons}
        if new.keys() - known.keys():
            write_atomic(self._path, to_json(BaselineTimes(seconds=new | known)))
        return reference

    def _known(self) -> dict[str, float]:
        try:
            return read_record(self._path, BaselineTimes).seconds
        except StoreError:  # none yet, or of an older release
            return {}


def drift_note(reference: ReferenceTime | None, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """How far the device was from its reference, if that is far."""
    if reference is None:
        return ()
    now = next(each for each in comparisons if each.baseline == reference.baseline).timing.median.value
    ratio = now / reference.seconds
    if 1 / (1 + WORTH_A_NOTE) <= ratio <= 1 + WORTH_A_NOTE:
        return ()
    return (
        f"drift of the machine: {reference.baseline} took {ratio:.2f} times as long as when it was first "
        "measured; the time is reduced by that",
    )
