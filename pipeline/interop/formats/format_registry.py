"""Files with measurements or a search space, in the formats of other tools, read as a RecordedSpace.

A format is a `FileFormat` value, registered by an entry point of the group `kernelmill.formats`: our own in
pyproject.toml, others in the metadata of their packages. The content of a file decides, not its name.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pipeline.interop.formats import json_files
from pipeline.interop.formats.json_files import listed, shown
from pipeline.records.entry_points import registered
from pipeline.records.errors import FormatError
from pipeline.records.record import Record
from pipeline.records.search.recorded_space import RecordedSpace

GROUP = "kernelmill.formats"


class FormatFile:
    """A file as text, and as JSON if it holds an object."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    @functools.cached_property
    def content(self) -> dict[str, Any] | None:
        """The JSON object; None if the text is something else."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def has(self, key: str) -> bool:
        """Whether it is a JSON object with this key."""
        return self.content is not None and key in self.content

    @property
    def json(self) -> dict[str, Any]:
        """The JSON object.

        Raises
        ------
        FormatError
            The text is something else.
        """
        return json_files.parsed(self.text, self.path) if self.content is None else self.content


class FileFormat(Record, frozen=True, kw_only=True):
    """A kind of file that can be read."""

    name: str
    description: str
    """What such a file is: "results of a tuner"."""
    recognizes: Callable[[FormatFile], bool]
    read: Callable[[FormatFile], RecordedSpace]
    """Raises FormatError if a part is missing or has another type: file, place, expected, got."""


@functools.cache
def formats() -> tuple[FileFormat, ...]:
    """Every registered format: our own, then those of other packages.

    Raises
    ------
    ConfigError
        An entry point is no FileFormat.
    """
    return tuple(registered(GROUP, FileFormat, "docs/recipes/format.md").values())


def read_recorded(path: Path) -> RecordedSpace:
    """A file in any of the formats, plain or gzip.

    Raises
    ------
    FormatError
        It cannot be read, or has none of these formats; one line: file, place, expected, got.
    """
    file = FormatFile(path, json_files.read_text(path))
    for candidate in formats():
        if candidate.recognizes(file):
            json_files.whole_characters(file.text, file.content, path)
            return candidate.read(file)
    known = ", ".join(f"{each.name} ({each.description})" for each in formats())
    got = f"a JSON object with the keys {json_files.listed(file.json)}"
    raise FormatError(f"{path}: top level: expected one of the formats {known}, got {got}")


def combined(described: RecordedSpace, measured: RecordedSpace) -> RecordedSpace:
    """The tunables, defaults and conditions of the one, the results and the device of the other.

    Raises
    ------
    FormatError
        They are not of one space: other tunables, or a value that is not declared.
    """
    if set(described.tunables) != set(measured.tunables):
        expected, got = listed(sorted(described.tunables)), listed(sorted(measured.tunables))
        raise FormatError(
            f"{measured.source}: expected the tunables of {described.source} ({expected}), got {got}"
        )
    for name, values in described.tunables.items():
        for result in measured.results:
            if result.tunables[name] not in values:
                got = shown(result.tunables[name])
                raise FormatError(
                    f"{measured.source}: {name}: expected a value of {described.source}, got {got}"
                )
    return msgspec.structs.replace(
        measured,
        source=f"{described.source} + {measured.source}",
        kernel=described.kernel or measured.kernel,
        language=described.language,
        problem=described.problem or measured.problem,
        arguments=described.arguments,
        tunables=described.tunables,
        order=described.order,
        defaults=described.defaults,
        constraints=described.constraints,
        constants=described.constants,
        notes=(*described.notes, *measured.notes),
    )
