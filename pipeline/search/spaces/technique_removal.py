"""Switch off each technique of a point, one at a time, with what else has to change.

If the rules exclude the point without a technique (for example scalar code with the blocking of vectors), the
nearest valid point is used: the one that changes the fewest other tunables, and these by the least.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipeline.records.configuration.kernel import TunableValue
from pipeline.search.spaces.lattice import Lattice, lattice
from pipeline.search.spaces.search_space import Subspace, Tunables


class Without(NamedTuple):
    """A point without one technique."""

    technique: str
    """Its name; of a tunable that expresses none: the tunable's."""
    tunables: Tunables
    changed: tuple[str, ...]
    """The technique's own tunables that differ from the point's."""
    along: tuple[str, ...]
    """Others that the rules made change with them."""


def without_each(subspace: Subspace, tunables: Tunables) -> Iterator[Without]:
    """The point without each technique, then with each other tunable at its default; valid points only."""
    for technique, off in _off(subspace).items():
        found = _without(subspace, tunables, technique, off)
        if found is not None:
            yield found
    for name, default in subspace.default.items():
        if name not in subspace.techniques:
            found = _without(subspace, tunables, name, {name: default})
            if found is not None:
                yield found


def _off(subspace: Subspace) -> dict[str, Tunables]:
    """Technique -> its tunables, switched off; in the order in which the tunables are declared."""
    found: dict[str, Tunables] = {}
    for tunable, values in subspace.values.items():
        if tunable in subspace.techniques:
            technique, value = subspace.techniques[tunable]
            if value in values:
                found.setdefault(technique, {})[tunable] = value
    return found


def _without(
    subspace: Subspace, tunables: Tunables, technique: str, off: Mapping[str, TunableValue]
) -> Without | None:
    changed = tuple(name for name, value in off.items() if tunables[name] != value)
    if not changed:
        return None
    found = {**tunables, **off}
    if not subspace.contains(found):
        nearest = _nearest(lattice(subspace), found, off)
        if nearest is None:
            return None
        found = nearest
    along = tuple(name for name, value in found.items() if name not in off and tunables[name] != value)
    return Without(technique, found, changed, along)


def _nearest(where: Lattice, wanted: Tunables, fixed: Mapping[str, TunableValue]) -> Tunables | None:
    """The valid point with the fixed values that is closest to the wanted one; None: none, or too many."""
    if not where.enumerable:
        return None
    import numpy as np

    steps = np.array(where.vector(wanted))
    sizes = np.array([max(len(axis.values) - 1, 1) for axis in where.axes])
    held = [place for place, axis in enumerate(where.axes) if axis.name in fixed]
    rows = where.vectors[(where.vectors[:, held] == steps[held]).all(axis=1)]
    if len(rows) == 0:
        return None
    count = (rows != steps).sum(axis=1)
    distance = (np.abs(rows - steps) / sizes).sum(axis=1)
    return where.tunables(rows[np.lexsort((distance, count))[0]].tolist())
