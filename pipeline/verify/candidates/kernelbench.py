"""Reads a folder of problems in the format of KernelBench. In: its path. Out: what there is to judge.

Files are parsed, nothing is run. Obvious mistakes (no `Model`, a syntax error) are reported at once, one line
each, and the rest is judged.
"""

import ast
from collections.abc import Iterable
from pathlib import Path

from pipeline.backends.registry import backend, candidate_backends
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest_bytes, digest_parts
from pipeline.records.results.judged import CandidateFile, ProblemFolder
from pipeline.verify.candidates.imported_packages import imported_packages, names_module, package_digests

PROBLEM = "problem.py"
SOLUTIONS = "solutions"
REQUIRED = ("Model", "get_inputs")
_NO_PART = ("__pycache__", SOLUTIONS)


def complaints(problem: ProblemFolder) -> tuple[str, ...]:
    """One line for each thing that a user must fix: file, what, expected."""
    lines = [] if problem.failure is None else [f"{problem.path}: {problem.failure.reason}"]
    lines += [f"{each.path}: {each.failure.reason}" for each in problem.candidates if each.failure]
    if not problem.candidates:
        folder = Path(problem.path).parent / SOLUTIONS
        lines.append(f"{folder}: no candidates, expected {SOLUTIONS}/*.py")
    return tuple(lines)


def scan(folder: Path) -> tuple[ProblemFolder, ...]:
    """All problems of a folder by name.

    Raises
    ------
    ConfigError
        It is not a folder, or holds no problem.
    """
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ConfigError(f"{folder}: {what}, expected a folder of problems (<problem>/{PROBLEM})")
    if (folder / PROBLEM).is_file() or (folder / SOLUTIONS).is_dir():
        raise ConfigError(f"{folder}: is one problem, expected the folder that holds it: {folder.parent}")
    found = [_problem(path) for path in sorted(folder.iterdir()) if _may_be_problem(path)]
    if not found:
        raise ConfigError(f"{folder}: holds no problem, expected <problem>/{PROBLEM} and {SOLUTIONS}/*.py")
    return tuple(found)


def _may_be_problem(path: Path) -> bool:
    """Any visible folder: one without problem.py is complained about, not passed over."""
    return path.is_dir() and not path.name.startswith((".", "_"))


def _problem(folder: Path) -> ProblemFolder:
    path = folder / PROBLEM
    return ProblemFolder(
        name=folder.name,
        path=str(path),
        digest=digest_parts({str(file.relative_to(folder)): _digest(file) for file in _parts(folder)}),
        candidates=tuple(_candidate(file) for file in sorted((folder / SOLUTIONS).glob("*.py"))),
        failure=_complaint(path, REQUIRED, Outcome.BAD_PROBLEM),
    )


def _parts(folder: Path) -> Iterable[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not set(path.relative_to(folder).parts[:-1]) & set(_NO_PART):
            yield path


def _digest(file: Path) -> str:
    try:
        return digest_bytes(file.read_bytes())
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _candidate(path: Path) -> CandidateFile:
    packages = _imports(path)
    imported = {key: value for name in packages for key, value in package_digests(name).items()}
    return CandidateFile(
        name=path.stem,
        path=str(path),
        digest=digest_parts({**imported, "": _digest(path)}) if imported else _digest(path),
        languages=_languages(path, packages),
        # Whether it has a ModelNew is seen when it is imported: it may make one in any way it likes.
        failure=_complaint(path, (), Outcome.COMPILE_ERROR),
    )


def _imports(path: Path) -> tuple[str, ...]:
    try:
        return imported_packages(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _languages(path: Path, packages: tuple[str, ...]) -> tuple[str, ...]:
    """Backends whose language the candidate, or a package that it imports, names."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return ()
    words = {name: backend(name).language.module or name for name in candidate_backends()}
    return tuple(
        name
        for name, word in words.items()
        if word in text or any(names_module(package, word) for package in packages)
    )


def _complaint(path: Path, names: tuple[str, ...], outcome: Outcome) -> Failure | None:
    """Obvious mistakes: an unreadable file, a syntax error, a missing name."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except FileNotFoundError:
        return Failure(outcome=outcome, reason=f"no such file, expected {', '.join(names)} in it")
    except OSError as error:
        return Failure(outcome=outcome, reason=f"cannot be read: {error.strerror}")
    except SyntaxError as error:
        return Failure(outcome=outcome, reason=f"line {error.lineno or 1}: syntax error: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes, absurd nesting
        return Failure(outcome=outcome, reason=f"cannot be parsed: {error}")
    bound = _bound_names(tree)
    missing = [name for name in names if name not in bound]
    if not missing or "*" in bound:
        return None
    kind = "class" if missing[0][0].isupper() else "function"
    return Failure(outcome=outcome, reason=f"no {kind} {missing[0]}, expected {', '.join(names)}")


def _bound_names(tree: ast.Module) -> set[str]:
    """Every name that the module's own statements may bind, those in `if` and `try` too."""
    names: set[str] = set()
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)  # what is bound inside is not the module's
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        todo.extend(ast.iter_child_nodes(node))
    return names
