"""Private interfaces of libraries. In: a path. Out: the object there, a public substitute, or an error.

Only modules called `*_internals` import this one: one for each library in a room that needs it.
"""

import importlib.metadata
import pkgutil
from collections.abc import Callable
from typing import Any

from pipeline.records.errors import ToolchainError

TESTED = {"torch": ("2.11", "2.13"), "triton": ("3.6", "3.9")}
"""Library -> the first and the last version whose private interfaces are known."""


def lookup(path: str) -> Any:
    """The object at a path such as `torch._C:TensorBase` (module, then names); None if it is not there."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None


def internal(path: str, public: Callable[[], Any] | None = None) -> Any:
    """The object at a path; if it is gone, what `public` makes of documented interfaces.

    Raises
    ------
    ToolchainError
        It is gone, and no documented interface can replace it: names the library, its version and the range
        that is tested.
    """
    found = lookup(path)
    if found is None:
        if public is None:
            raise ToolchainError(absence(path))
        found = public()
    return found


def absence(path: str) -> str:
    """What to say of a private interface that is gone."""
    path = path.replace(":", ".")
    library = path.partition(".")[0]
    first, last = TESTED[library]
    try:
        version = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        version = "(not installed)"
    return (
        f"{library} {version} has no {path}, a private interface: expected {library} {first} to {last}; "
        f"run pip install '{library}=={last}.*'"
    )
