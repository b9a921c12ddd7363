"""What an adapter makes of another project's folder: problems and candidates in the layout of judge.

In: names, texts, and the files that they come from. Out: `<problem>/problem.py` and `solutions/*.py` below a
folder of the artifact store, and one line for each thing that was left out. Files that are as they were keep
their time; files of an earlier conversion that are no part of this one are removed.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.records.record import Record, digest
from pipeline.verify.candidates.kernelbench import SOLUTIONS
from pipeline.verify.candidates.source_files import unusable

FOLDERS_DEEP = 5
"""Below the folder that is judged; checkouts keep problems at most that deep."""


class ConvertedProblem(Record, frozen=True, kw_only=True):
    """One problem with its candidates."""

    name: str
    """As the other project names it, with its group in front: `level1/23_Softmax`."""
    folder: str


class Conversion(Record, frozen=True, kw_only=True):
    """All that there is to judge."""

    problems: tuple[ConvertedProblem, ...]
    complaints: tuple[str, ...]


class ConvertedFolder:
    """Written by one adapter from one folder."""

    def __init__(self, source: Path, out: Path) -> None:
        self.source = source
        self._out = out
        self._roots = [source]
        self._problems: dict[str, Path] = {}
        self._candidates: dict[tuple[str, str], Path] = {}
        self._written: set[Path] = set()
        self._complaints: list[str] = []

    def complain(self, path: Path, text: str) -> None:
        """One line for a file that is left out."""
        self._complaints.append(" ".join(f"{path}: {text}".split()))

    def allow(self, folder: Path) -> None:
        """Sources may lie there as well: a checkout around the folder that is judged."""
        self._roots.append(folder)

    def text(self, path: Path) -> str | None:
        """A source of the other project; None where it cannot be taken, with a line that says why."""
        root = next((each for each in self._roots if path.is_relative_to(each)), self.source)
        reason = unusable(path, root)
        content = b""
        if reason is None:
            try:
                content = path.read_bytes()
            except OSError as error:
                reason = f"cannot be read: {error.strerror}"
        if reason is None and not content.strip():
            reason = "is empty"
        try:
            decoded = content.decode()
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8: {error.reason} at byte {error.start}"
        if reason is not None:
            self.complain(path, reason)
            return None
        return decoded

    def add_problem(self, name: str, files: Mapping[str, str], origin: Path) -> bool:
        """`files` has `problem.py`, and what it imports; False where the name is taken."""
        if name in self._problems:
            self.complain(origin, f"a problem {name} was read before, this one is left out")
            return False
        folder = self._out / file_name(name)
        self._problems[name] = folder
        for path, text in files.items():
            self._write(folder / path, text)
        return True

    def add_candidate(self, problem: str, name: str, text: str, origin: Path) -> None:
        """The text has `ModelNew`; `origin` is the file that it was made of."""
        if problem not in self._problems:
            self.complain(origin, f"there is no problem {problem}, its candidate is left out")
            return
        before = self._candidates.setdefault((problem, name), origin)
        if before != origin:
            self.complain(origin, f"{before} is candidate {name} of {problem} as well, this one is left out")
            return
        self._write(self._problems[problem] / SOLUTIONS / f"{file_name(name)}.py", text)

    def finished(self) -> Conversion:
        """What was added, in order; what was written before and not now is removed."""
        for path in sorted(self._out.rglob("*"), reverse=True):
            if path.is_dir():
                with contextlib.suppress(OSError):  # it is not empty
                    path.rmdir()
            elif path not in self._written:
                path.unlink()
        found = (ConvertedProblem(name=name, folder=str(folder)) for name, folder in self._problems.items())
        return Conversion(problems=tuple(found), complaints=tuple(self._complaints))

    def _write(self, path: Path, text: str) -> None:
        self._written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def file_name(name: str) -> str:
    """The name of a file for any name: itself if it is plain, else with a digest that keeps it unique."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("._")[:100] or "unnamed"
    return plain if plain == name else f"{plain}-{digest(name)[:6]}"


def not_converted(reason: str) -> str:
    """A file that says why it cannot be judged, as a problem and as a candidate."""
    return f'''"""Not converted."""

raise NotImplementedError({reason!r})


class Model: ...


class ModelNew: ...


def get_inputs(): ...
'''


def files_below(folder: Path) -> Iterator[Path]:
    """All files at most `FOLDERS_DEEP` folders below, sorted; not those in hidden or linked folders."""
    for root, folders, files in os.walk(folder):
        depth = len(Path(root).relative_to(folder).parts)
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "__")) and depth < FOLDERS_DEEP
        )
        yield from (Path(root) / name for name in sorted(files))


def files_named(folder: Path, name: str) -> Iterator[Path]:
    """Those of one name."""
    return (path for path in files_below(folder) if path.name == name)
