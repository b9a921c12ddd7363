"""Folders of other projects with problems and candidates, converted to the layout that judge reads.

A kind of folder is a `ProblemSet` value, registered by an entry point of the group `kernelmill.problem_sets`:
our own in pyproject.toml, others in the metadata of their packages. Files decide what a folder is, not its
name.
"""

import functools
from collections.abc import Callable
from pathlib import Path

from pipeline.interop.problem_sets.converted_folder import (
    Conversion,
    ConvertedFolder,
    ConvertedProblem,
    file_name,
)
from pipeline.records.entry_points import registered
from pipeline.records.record import Record
from pipeline.verify.candidates.kernelbench import PROBLEM

GROUP = "kernelmill.problem_sets"


class ProblemSet(Record, frozen=True, kw_only=True):
    """A kind of folder that can be judged."""

    name: str
    description: str
    """What such a folder holds: "level*/N_name.py and runs/"."""
    recognizes: Callable[[Path], bool]
    """Whether a folder is of this kind; looks at names of files only."""
    convert: Callable[[ConvertedFolder], None]
    """Adds all problems and candidates of `ConvertedFolder.source`; what is wrong with one is a complaint."""


@functools.cache
def problem_sets() -> tuple[ProblemSet, ...]:
    """Every registered kind: our own, then those of other packages.

    Raises
    ------
    ConfigError
        An entry point is no ProblemSet.
    """
    return tuple(registered(GROUP, ProblemSet, "docs/guide/problem_sets.md").values())


def convert_folder(folder: Path, out: Path) -> Conversion | None:
    """All problems of a folder in other projects' formats, written below `out`; None if it holds none.

    A folder may mix formats, and problems in our own layout: all are converted, under names that begin with
    their format's.
    """
    folder = folder.absolute()
    found = [each for each in problem_sets() if each.recognizes(folder)] if folder.is_dir() else []
    if not found:
        return None
    own = sorted(path.parent for path in folder.glob(f"*/{PROBLEM}"))
    mixed = len(found) + bool(own) > 1
    problems = [ConvertedProblem(name=path.name, folder=str(path)) for path in own]
    complaints = list[str]()
    if mixed:
        names = ", ".join([*(each.name for each in found), *(["kernelmill"] if own else [])])
        complaints.append(f"{folder}: holds problems of several formats ({names}), all are judged")
    for each in found:
        target = ConvertedFolder(folder, out / file_name(each.name))
        each.convert(target)
        made = target.finished()
        complaints += made.complaints
        problems += (
            ConvertedProblem(
                name=f"{each.name}/{problem.name}" if mixed else problem.name,
                folder=problem.folder,
            )
            for problem in made.problems
        )
    return Conversion(problems=tuple(problems), complaints=tuple(complaints))
