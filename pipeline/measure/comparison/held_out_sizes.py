"""Sizes that a problem does not declare, to see whether a candidate is fast on the declared ones only.

In: the module-level sizes of a problem. Out: other choices of them, those first that change most.
"""

from collections.abc import Iterator, Mapping

PARAMETER_AT_LEAST = 32
"""A smaller number may be the size of a filter, a stride or a number of groups: it stays as it is."""
SHARES = (0.5, 0.75)
"""Of the declared sizes, made odd: a multiple of no block size."""


def held_out_sizes(declared: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Smaller sizes, which take no more memory than the declared ones: all names together, then each alone.

    `Model` need not accept them: a size may have to be a multiple of another one.
    """
    names = sorted(
        (name for name, value in declared.items() if value >= PARAMETER_AT_LEAST), key=declared.__getitem__
    )
    for share in SHARES if len(names) > 1 else ():
        yield {name: _odd(share * declared[name]) for name in names}
    for name in reversed(names):
        for share in SHARES:
            yield {name: _odd(share * declared[name])}


def _odd(value: float) -> int:
    return int(value) // 2 * 2 + 1
