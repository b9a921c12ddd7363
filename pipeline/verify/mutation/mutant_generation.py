"""Generates the mutants of one implementation, and the order in which to try them.

In: the sources as the backend names them. Out: mutants by operator.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.backends.language import Language
from pipeline.records.results.mutated import Mutant
from pipeline.verify.mutation import cpp_operators, python_operators
from pipeline.verify.mutation.source_edit import Operator, apply, make_mutant

_GOLDEN = 0.6180339887498949  # multiples of it, modulo 1, are spread as evenly as any sequence can be

OPERATORS: dict[str, Mapping[str, Operator]] = {
    "python": python_operators.OPERATORS,
    "cpp": cpp_operators.OPERATORS,
}
"""`Language.mutation` -> the mistakes that can be made in its sources."""


def find_mutants(files: Sequence[Path], root: Path, language: Language) -> dict[str, tuple[Mutant, ...]]:
    """Operator -> its mutants, in the order of the files; operators that do not apply have none."""
    found: dict[str, dict[str, Mutant]] = {}
    operators = OPERATORS[language.mutation] if language.mutation is not None else {}
    for file in (each for each in files if each.suffix in language.suffixes):
        source = read(file)
        for name, operator in operators.items():
            known = found.setdefault(name, {})
            for edit in operator(source):
                mutant = make_mutant(name, file.relative_to(root).as_posix(), source, edit)
                if mutant is not None:
                    known.setdefault(mutant.id, mutant)
    return {name: tuple(known.values()) for name, known in found.items()}


def spread(mutants: Sequence[Mutant]) -> tuple[Mutant, ...]:
    """In an order whose every prefix is spread evenly over the source; equal sources give equal orders."""
    order: dict[int, None] = {}
    step = 0
    while len(order) < len(mutants):
        order[int((step * _GOLDEN % 1.0) * len(mutants))] = None
        step += 1
    return tuple(mutants[number] for number in order)


def write_mutated(mutant: Mutant | None, files: Sequence[Path], root: Path, copy: Path) -> None:
    """Copy the sources of an implementation below `copy`, with the mistake in them where there is one."""
    for file in files:
        path = file.relative_to(root)
        source = read(file)
        if mutant is not None and path.as_posix() == mutant.file:
            source = apply(mutant, source)
        target = copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.encode("latin-1"))


def read(file: Path) -> str:
    """A source as text whose characters are its bytes."""
    return file.read_bytes().decode("latin-1")
