"""What many tasks share is made once. In: a function of records. Out: the same, called once for each.

Records hold mappings and cannot be hashed, and to encode them costs as much as what is saved. A sweep's tasks
share the records themselves: so their identity counts. They are kept, so that it stays theirs.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Memoized(Generic[T]):
    """A function whose results are kept by the identity of its arguments, of strings by their content."""

    def __init__(self, make: Callable[..., T]) -> None:
        self._make = make
        self._known: dict[tuple[int | str, ...], tuple[tuple[Any, ...], T]] = {}

    def __call__(self, *given: Any) -> T:
        """The result; nobody may change it. An exception is raised each time."""
        key = tuple([each if isinstance(each, str) else id(each) for each in given])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (given, self._make(*given))
        return found[1]
