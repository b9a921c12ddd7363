"""The file that a task replays. In: its path and digest, as planned. Out: what it says of a variant."""

import functools
from collections.abc import Mapping
from pathlib import Path

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.records.errors import FormatError
from pipeline.records.kernel import TunableValue
from pipeline.records.record import digest_bytes
from pipeline.records.recorded import RecordedFile, RecordedResult, RecordedSpace
from pipeline.records.variant import Variant

Configuration = frozenset[tuple[str, bool, TunableValue]]


class Replay:
    """The results of a file, by configuration."""

    def __init__(self, recorded: RecordedSpace) -> None:
        self._results = {_configuration(each.tunables): each for each in recorded.results}

    def of(self, variant: Variant) -> RecordedResult | None:
        """What was recorded of a variant; None where nothing was, as of every source that a search wrote."""
        return None if variant.written else self._results.get(_configuration(variant.tunables))


def replay(file: RecordedFile, project: Path) -> Replay:
    """The file as the plan found it, read once by each process.

    Raises
    ------
    FormatError
        It is gone, or another one than when the plan was made.
    """
    path = project / file.path
    try:
        found = digest_bytes(path.read_bytes())
    except OSError as error:
        raise FormatError(f"{path}: recorded measurements: {error.strerror or error}") from None
    if found != file.digest:
        text = f"expected the content with the digest {file.digest}, got {found}"
        raise FormatError(
            f"{path}: changed since the plan was made: {text}; run again, and it is planned anew"
        )
    return _read(path, file.digest)


@functools.lru_cache(maxsize=4)
def _read(path: Path, digest: str) -> Replay:  # noqa: ARG001  (another content is another file)
    return Replay(read_recorded(path))


def _configuration(tunables: Mapping[str, TunableValue]) -> Configuration:
    """1 and true are two values; 1 and 1.0 are one, as to Python's dictionaries."""
    return frozenset((name, isinstance(value, bool), value) for name, value in tunables.items())
