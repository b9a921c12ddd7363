"""SOL-ExecBench: folders with `definition.json`, `workload.jsonl` and solutions.

In: a checkout, a data set, or any folder of problems in it. Out: a problem for each `definition.json` by its
path (`L1/name`); candidates are the `solution*.json` next to it. The records are those of flashinfer-bench.
"""

from pathlib import Path

import msgspec

from pipeline.interop.problem_sets.converted_folder import ConvertedFolder, files_named, not_converted
from pipeline.interop.problem_sets.flashinfer.conversion import candidate, problem_files
from pipeline.interop.problem_sets.flashinfer.data_set import Definition, DefinitionWorkload, Solution
from pipeline.interop.problem_sets.problem_set_registry import ProblemSet

DEFINITION, WORKLOADS = "definition.json", "workload.jsonl"


def convert(into: ConvertedFolder) -> None:
    """Add all problems."""
    for path in files_named(into.source, DEFINITION):
        if not (path.parent / WORKLOADS).exists():
            continue
        name = "/".join(path.parent.relative_to(into.source).parts) or path.parent.name
        text = into.text(path)
        if text is None:
            continue
        try:
            definition = msgspec.json.decode(text, type=Definition)
        except msgspec.DecodeError as error:
            into.complain(path, f"not a definition: {error}")
            into.add_problem(name, {"problem.py": not_converted(f"not a definition: {error}")}, path)
            continue
        files = problem_files(into.source, definition, _workloads(into, path.parent / WORKLOADS))
        if into.add_problem(name, files, path):
            for solution in sorted(path.parent.glob("solution*.json")):
                _add_solution(into, name, definition, solution)


def _workloads(into: ConvertedFolder, path: Path) -> list[DefinitionWorkload]:
    found = []
    for number, line in enumerate((into.text(path) or "").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=DefinitionWorkload))
        except msgspec.DecodeError as error:
            into.complain(Path(f"{path}:{number}"), f"not a workload: {error}")
    return found


def _add_solution(into: ConvertedFolder, problem: str, definition: Definition, path: Path) -> None:
    text = into.text(path)
    if text is None:
        return
    try:
        solution = msgspec.json.decode(text, type=Solution)
    except msgspec.DecodeError as error:
        into.complain(path, f"not a solution: {error}")
        return
    if solution.definition != definition.name:
        into.complain(
            path, f"is a solution of {solution.definition}, expected {definition.name}; is left out"
        )
        return
    into.add_candidate(problem, solution.name, candidate(definition, solution), path)


def _recognizes(folder: Path) -> bool:
    return any((path.parent / WORKLOADS).exists() for path in files_named(folder, DEFINITION))


SOL_EXECBENCH = ProblemSet(
    name="SOL-ExecBench",
    description="definition.json, workload.jsonl and solution*.json",
    recognizes=_recognizes,
    convert=convert,
)
