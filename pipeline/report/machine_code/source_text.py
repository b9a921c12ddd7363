"""The text of source lines, where the sources are still those that were compiled."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.backends.machine_code.listing import SourceLine


class SourceTexts:
    """Lines by file name; absent for a file that is not known, or that changed since."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._lines: Mapping[str, list[str]] = {
            file.name: file.read_text(errors="replace").splitlines() for file in files
        }

    def text(self, source: SourceLine) -> str | None:
        """The line without its indentation."""
        lines = self._lines.get(Path(source.file).name, [])
        return lines[source.line - 1].strip() if 0 < source.line <= len(lines) else None
