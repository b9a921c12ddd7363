"""Entry points: what this package and others register in a group of their package metadata.

In a checkout the groups in `pyproject.toml` count for this package, not those of the installed metadata,
which an edit does not refresh.
"""

import functools
import importlib.metadata
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TypeVar

from pipeline.records.errors import ConfigError

T = TypeVar("T")
PACKAGE = "kernelmill"
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@functools.cache
def entry_points(group: str) -> dict[str, EntryPoint]:
    """Name -> entry point: our own in the order in which they are declared, then those of other packages."""
    own = _declared(group)
    found = importlib.metadata.entry_points(group=group)
    if own is None:
        return {entry.name: entry for entry in sorted(found, key=lambda entry: not _is_own(entry))}
    others = sorted((entry for entry in found if not _is_own(entry)), key=lambda entry: entry.name)
    return own | {entry.name: entry for entry in others if entry.name not in own}


def registered(group: str, kind: type[T], page: str) -> dict[str, T]:
    """Name -> value of each entry point of a group; `page` documents them.

    Raises
    ------
    ConfigError
        A value is not of this kind.
    """
    found = {}
    for name, entry in entry_points(group).items():
        loaded = entry.load()
        if not isinstance(loaded, kind):
            raise ConfigError(
                f"entry point {name} of {group}: got {loaded!r}, expected a {kind.__name__}: see {page}"
            )
        found[name] = loaded
    return found


def _is_own(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == PACKAGE


def _declared(group: str) -> dict[str, EntryPoint] | None:
    """None if the package is not run from a checkout."""
    try:
        project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return None
    if project.get("name") != PACKAGE:
        return None
    values: dict[str, str] = project.get("entry-points", {}).get(group, {})
    return {name: EntryPoint(name=name, value=value, group=group) for name, value in values.items()}
