"""Which tunables act on a finding: what is wanted, and the variant's declared space in; suggestions out.

A tunable is known by its technique in the kernel's yaml, or by a name that has one meaning everywhere:
`num_warps` and `num_stages` are Triton's own, `BLOCK…` and `TILE…` are sizes of tiles.
"""

import re
from typing import Literal

from pipeline.performance.diagnosis.case import Case
from pipeline.records.configuration.kernel import Tunable, TunableValue
from pipeline.records.results.diagnosed import Suggestion

Lever = Literal["warps", "stages", "tile", "unroll", "vector"]
Direction = Literal["increase", "decrease"]

_NAMES = {
    "warps": re.compile(r"num_warps$"),
    "stages": re.compile(r"num_stages$"),
    "tile": re.compile(r"(block|tile)(_|$)", re.IGNORECASE),
    "unroll": re.compile(r"unroll$", re.IGNORECASE),
    "vector": re.compile(r"(lanes|vectorize)$", re.IGNORECASE),
}
_TECHNIQUES = {
    "warps": frozenset[str](),
    "stages": frozenset({"software_pipelining"}),
    "tile": frozenset({"register_blocking", "row_blocking"}),
    "unroll": frozenset({"unrolling"}),
    "vector": frozenset({"vectorization"}),
}


def suggest(case: Case, *wanted: tuple[Lever, Direction]) -> tuple[Suggestion, ...]:
    """Tunables of the variant that can still go the wanted way."""
    found = []
    for lever, direction in wanted:
        for name, tunable in case.space.items():
            if name in case.tunables and _is(lever, name, tunable.technique):
                values = _beyond(case.tunables[name], tunable, direction)
                if values:
                    way = "switch" if isinstance(case.tunables[name], bool) else direction
                    found.append(
                        Suggestion(tunable=name, technique=tunable.technique, direction=way, values=values)
                    )
    return tuple(found)


def _is(lever: Lever, name: str, technique: str | None) -> bool:
    return _NAMES[lever].match(name) is not None or technique in _TECHNIQUES[lever]


def _beyond(
    value: TunableValue, tunable: Tunable, direction: Direction
) -> tuple[bool | int | float | str, ...]:
    """Declared values on the wanted side of the present one, the nearest first."""
    if isinstance(value, str):
        return ()
    numbers = [each for each in tunable.values if not isinstance(each, str)]
    if direction == "increase":
        return tuple(sorted(each for each in numbers if each > value))
    return tuple(sorted((each for each in numbers if each < value), reverse=True))
