"""Memoization by identity: a function of records in, one that is called once for equal arguments out.

Records hold mappings and cannot be hashed, and encoding them costs as much as it saves. The tasks of a sweep
share the records themselves, so arguments are compared by identity. They are kept alive, so that no other
object gets the same identity.
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
        """The result, which callers must not change. An exception is raised each time."""
        key = tuple([each if isinstance(each, str) else id(each) for each in given])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (given, self._make(*given))
        return found[1]
