"""Reads a folder of problems in the format of KernelBench. In: its path. Out: what there is to judge.

Files are parsed, nothing is run. Obvious mistakes (no `Model`, a syntax error) are reported at once, one line
each, and the rest is judged.
"""

import ast
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

from pipeline.backends.registry import backend, candidate_backends
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import DIGEST_LENGTH, digest_bytes, digest_parts
from pipeline.records.results.judged import CandidateFile, ProblemFolder
from pipeline.verify.candidates.imported_packages import imported_packages, names_module, package_digests
from pipeline.verify.candidates.source_files import unusable

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
    paths = [path for path in sorted(folder.iterdir()) if _may_be_problem(path)]
    if not any((path / PROBLEM).is_file() or (path / SOLUTIONS).is_dir() for path in paths):
        raise ConfigError(f"{folder}: holds no problem, expected <problem>/{PROBLEM} and {SOLUTIONS}/*.py")
    return tuple(problem_folder(path, name=path.name, root=folder) for path in paths)


def _may_be_problem(path: Path) -> bool:
    """Any visible folder: one without problem.py is complained about where others have one."""
    return path.is_dir() and not path.name.startswith((".", "_"))


def problem_folder(folder: Path, *, name: str, root: Path) -> ProblemFolder:
    """One problem with its candidates; sources that links lead to must lie below `root`."""
    path = folder / PROBLEM
    return ProblemFolder(
        name=name,
        path=str(path),
        digest=digest_parts({str(file.relative_to(folder)): _digest(file) for file in _parts(folder)}),
        candidates=tuple(candidate_file(file, root) for file in sorted((folder / SOLUTIONS).glob("*.py"))),
        failure=_Source(path, root).complaint(REQUIRED, Outcome.BAD_PROBLEM),
    )


def _parts(folder: Path) -> Iterable[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not set(path.relative_to(folder).parts[:-1]) & set(_NO_PART):
            yield path


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:DIGEST_LENGTH]
    except OSError as error:
        return f"unreadable: {error.strerror}"


def candidate_file(path: Path, root: Path) -> CandidateFile:
    """One candidate, as far as it shows without running it."""
    source = _Source(path, root)
    packages = () if source.tree is None else imported_packages(source.tree)
    imported = {key: value for name in packages for key, value in package_digests(name).items()}
    own = digest_bytes(source.content)
    return CandidateFile(
        name=path.stem,
        path=str(path),
        digest=digest_parts({**imported, "": own}) if imported else own,
        languages=_languages(source.content, packages),
        # Whether it has a ModelNew is seen when it is imported: it may make one in any way it likes.
        failure=source.complaint((), Outcome.COMPILE_ERROR),
    )


def _languages(content: bytes, packages: tuple[str, ...]) -> tuple[str, ...]:
    """Backends whose language the candidate, or a package that it imports, names."""
    return tuple(
        name
        for name, words in _language_words().items()
        if any(
            word.encode() in content or any(names_module(package, word) for package in packages)
            for word in words
        )
    )


@functools.cache
def _language_words() -> dict[str, tuple[str, ...]]:
    languages = {name: backend(name).language for name in candidate_backends()}
    return {name: each.words or (each.module or name,) for name, each in languages.items()}


class _Source:
    """A source that was read and parsed once, or what prevented that."""

    def __init__(self, path: Path, root: Path) -> None:
        self.content = b""
        self.tree: ast.Module | None = None
        self._error = unusable(path, root)
        self._missing = False
        if self._error is not None:
            return
        try:
            self.content = path.read_bytes()
            self.tree = ast.parse(self.content, filename=str(path))
        except FileNotFoundError:
            self._missing = True
        except OSError as error:
            self._error = f"cannot be read: {error.strerror}"
        except SyntaxError as error:
            self._error = f"line {error.lineno or 1}: syntax error: {error.msg}"
        except (ValueError, RecursionError, MemoryError) as error:  # null bytes, absurd nesting
            self._error = f"cannot be parsed: {error}"

    def complaint(self, names: tuple[str, ...], outcome: Outcome) -> Failure | None:
        """Obvious mistakes: an unreadable file, a syntax error, a missing name."""
        if self._missing:
            return Failure(outcome=outcome, reason=f"no such file, expected {', '.join(names)} in it")
        if self._error is not None:
            return Failure(outcome=outcome, reason=self._error)
        if self.tree is None or not self.content.strip():
            return Failure(outcome=outcome, reason="is empty")
        bound = _bound_names(self.tree)
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
