"""A candidate for any problem: a copy of its own `Model`, to find out about the problem.

In: problems. Out: a file per problem. It has no kernel of its own, so that it only passes if judge does not
ask who did the work; what it fails on is the problem's fault.
"""

from pathlib import Path

import msgspec

from pipeline.interop.problem_sets.converted_folder import file_name
from pipeline.records.results.judged import ProblemFolder
from pipeline.verify.candidates.kernelbench import SOLUTIONS, candidate_file

NAME = "copy_of_model"


def with_copy_of_model(problem: ProblemFolder, out: Path) -> ProblemFolder:
    """The problem with one candidate in place of all others, written below `out`."""
    # Nobody looks at the candidate of what is no problem.
    text = copy_of_model(Path(problem.path)) if problem.failure is None else ""
    path = out / file_name(problem.name) / f"{NAME}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    return msgspec.structs.replace(problem, candidates=(candidate_file(path, out),))


def copy_of_model(problem: Path) -> str:
    """The source of the candidate; imports what the problem imports, from where it does."""
    text = problem.read_text(errors="replace")
    future = [line for line in text.splitlines() if line.startswith("from __future__ ")]
    alone = {path.name for path in problem.parent.iterdir()} <= {problem.name, SOLUTIONS, "__pycache__"}
    # The place is part of the candidate's identity: without neighbours, a verdict is the same anywhere.
    place = "" if alone else f"import sys\n\nsys.path.insert(0, {str(problem.parent.absolute())!r})\n"
    tail = '\n\nclass ModelNew(Model):\n    """A copy of Model, as it is."""\n'
    return "\n".join([*future, place, text]) + tail
