"""The same problem on several platforms: rows in, one at a time; pairs of their best variants out.

A platform is a backend and a kind of target. Only one row of each problem and platform is remembered: the
fastest that was measured, else the declared default, else the first.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.interop.dataset.row_schema import DatasetRow, PlatformPair
from pipeline.records.outcome import Outcome
from pipeline.records.record import digest


class _Best(NamedTuple):
    """Compares by what makes a variant the better one; the id only breaks ties."""

    rank: int
    seconds: float
    id: str
    kernel: str


_CHOSEN = ("fastest", "default", "first")


class PairCollector:
    """Collects the best row of each problem and platform."""

    def __init__(self) -> None:
        self._best: dict[str, dict[str, _Best]] = {}

    def add(self, row: DatasetRow, *, default: bool) -> None:
        """Look at a verified row."""
        platforms = self._best.setdefault(row.group, {})
        name = f"{row.backend}/{row.kind}"
        found = _best(row, default=default)
        known = platforms.get(name)
        # Among those that nothing tells apart, the first one stays.
        if known is None or found[:2] < known[:2]:
            platforms[name] = found

    def pairs(self) -> Iterator[PlatformPair]:
        """Each two platforms of a problem once, in the order of their names."""
        for group, platforms in self._best.items():
            for left, right in itertools.combinations(sorted(platforms), 2):
                one, other = platforms[left], platforms[right]
                yield PlatformPair(
                    id=digest([one.id, other.id]),
                    group=group,
                    kernel=one.kernel,
                    left=one.id,
                    left_platform=left,
                    left_chosen=_CHOSEN[one.rank],
                    right=other.id,
                    right_platform=right,
                    right_chosen=_CHOSEN[other.rank],
                )


def _best(row: DatasetRow, *, default: bool) -> _Best:
    if row.measurement is not None and row.outcome is Outcome.PASSED:
        return _Best(rank=0, seconds=row.measurement.seconds.value, id=row.id, kernel=row.kernel)
    return _Best(rank=1 if default else 2, seconds=0.0, id=row.id, kernel=row.kernel)
