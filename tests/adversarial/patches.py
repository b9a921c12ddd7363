"""Candidates that differ from a right solution of their problem in a few lines, stored as patches.

`<solution>.diff` next to a problem holds patches against `solutions/<solution>.py`. Each begins with a line
`=== name` and the docstring of the candidate, followed by hunks: `@@`, then the lines of a unified diff, with
as much context as it takes to find the place.
"""

import re
from pathlib import Path

_DOCSTRING = re.compile(r'\A"""(.*?)"""\n\n?', re.DOTALL)
_SECTION = re.compile(r"^=== (\w+)\n", re.MULTILINE)
_HUNK = re.compile(r"^@@\n", re.MULTILINE)


class PatchError(Exception):
    """A patch does not apply."""


def patched(path: Path) -> dict[str, str]:
    """Name -> source of every candidate of a `.diff`; PatchError if a hunk does not fit exactly once."""
    base = (path.parent / "solutions" / f"{path.stem}.py").read_text()
    _, *parts = _SECTION.split(path.read_text())
    names, patches = parts[::2], parts[1::2]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise PatchError(f"{path}: {', '.join(sorted(repeated))}: expected each name once")
    return {
        name: apply(base, patch.rstrip("\n"), f"{path}: {name}")
        for name, patch in zip(names, patches, strict=True)
    }


def apply(base: str, patch: str, where: str) -> str:
    """The right solution with one patch applied; `where` is for messages."""
    docstring, *hunks = _HUNK.split(patch + "\n")
    source = _DOCSTRING.sub("", base)
    places = [_located(source, hunk, f"{where}, hunk {number}") for number, hunk in enumerate(hunks, 1)]
    for start, old, new in sorted(places, reverse=True):
        source = source[:start] + new + source[start + len(old) :]
    text = docstring.strip("\n")
    return (f'"""{text}"""\n\n' if text else "") + source


def _located(source: str, hunk: str, where: str) -> tuple[int, str, str]:
    """Offset, old and new text of a hunk."""
    lines = hunk.splitlines(keepends=True)
    wrong = next((line for line in lines if line[0] not in " +-\n"), None)
    if wrong is not None:
        raise PatchError(
            f"{where}: got the line {wrong.rstrip()!r}, expected it to begin with ' ', '+' or '-'"
        )
    old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
    found = [match.start() + 1 for match in re.finditer(f"(?=\n{re.escape(old)})", f"\n{source}")]
    if not old or len(found) != 1:
        raise PatchError(f"{where}: its old lines occur {len(found)} times, expected once:\n{old}")
    return found[0] - 1, old, new
