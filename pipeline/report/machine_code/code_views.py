"""Views of the machine code of compiled variants: words that name variants in, lines out.

A variant is named as the tables name it: by the beginning of its id, by its compile_folder, or by
key=value words (kernel, workload, hardware, dtype, implementation, default, any tunable).
"""

import functools
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pipeline.backends.listings import read_listings
from pipeline.backends.machine_code.listing import Listing
from pipeline.backends.registry import backend
from pipeline.backends.source_digests import Sources
from pipeline.performance.quantities import counted
from pipeline.records.errors import ConfigError, KernelmillError, StoreError, hint
from pipeline.records.layout import output_path, spec_path
from pipeline.records.planning.specs import AggregateSpec, CompileSpec, TaskRow
from pipeline.records.record import Record, read_record
from pipeline.records.results.collection import Result, is_default
from pipeline.records.results.compiled import CompileOutput
from pipeline.report.machine_code.code_listing import (
    SourceTexts,
    difference_lines,
    differences,
    fact_differences,
    facts_lines,
    heading,
    hot_lines,
    identity,
    line_counts,
    line_differences,
    listing_lines,
)
from pipeline.report.machine_code.code_report import CodeExample, ReportedKernel, report
from pipeline.store.atomic import write_atomic
from pipeline.store.stored_sources import root_of

_KEYS: dict[str, Callable[[Result], object]] = {
    "kernel": lambda result: result.task.kernel,
    "workload": lambda result: result.task.workload,
    "hardware": lambda result: result.task.hardware,
    "architecture": lambda result: result.architecture,
    "dtype": lambda result: result.task.dtype,
    "implementation": lambda result: result.variant.implementation,
    "backend": lambda result: result.variant.backend,
    "optimization": lambda result: result.task.optimization,
    "default": lambda result: result.default,
}
_SHOWN = 12  # names in an error text


def stored(root: Path) -> tuple[Result, ...]:
    """Every variant that was compiled for a planned task, whether it passed or not; later stages left out.

    Raises
    ------
    StoreError
        A record cannot be read, or nothing was compiled.
    """
    tasks: dict[tuple[str, str, str, str], TaskRow] = {}
    for path in sorted((root / "plan" / "aggregate").glob("*.json")):
        for task in read_record(path, AggregateSpec).tasks:
            tasks.setdefault((task.compile, task.workload, task.hardware, task.optimization), task)
    found = tuple(result for task in tasks.values() for result in _of_task(root, task))
    if not found:
        raise StoreError(f"{root}: nothing was compiled yet: kernelmill run does")
    return found


def one(results: Sequence[Result], words: Sequence[str]) -> Result:
    """The variant that the words name, compiled.

    Raises
    ------
    ConfigError
        No variant or several fit; the text lists what there is.
    """
    found = matching(results, words)
    if len({result.compile.entry for result in found if result.compile}) > 1:
        raise ConfigError(
            f"{' '.join(words) or 'no words'}: {len(found)} variants; add {_distinguishing(found)}"
        )
    (result, *_) = found
    if result.failure is not None:
        raise ConfigError(f"{' '.join(words)}: {result.failure.outcome}: {result.failure.reason}")
    return result


def matching(results: Sequence[Result], words: Sequence[str]) -> tuple[Result, ...]:
    """All variants that the words name, the newest build of each; raises ConfigError where there is none."""
    left: Sequence[Result] = results
    for word in words:
        fitting = [result for result in left if _fits(word, result, results)]
        if not fitting:
            raise ConfigError(f"{word}: no such variant{_instead(word, left)}")
        left = fitting
    newest: dict[tuple[object, ...], Result] = {}
    for result in left:
        key = (*(value(result) for name, value in _KEYS.items() if name != "optimization"), *_point(result))
        if key not in newest or _created(result) > _created(newest[key]):
            newest[key] = result
    return tuple(newest.values())


def _of_task(root: Path, task: TaskRow) -> Iterable[Result]:
    spec_file = spec_path(root, "compile", task.compile)
    spec = read_record(spec_file, CompileSpec) if spec_file.is_file() else None
    for number in range(task.rounds):
        path = output_path(root, "compile", task.compile, number)
        for record in read_record(path, CompileOutput).records if path.is_file() else ():
            yield Result(
                task=task,
                round=number,
                variant=record.variant,
                id=record.variant.id,
                default=is_default(record.variant, spec),
                architecture=spec.target.architecture if spec else None,
                features=spec.target.features if spec else (),
                compile=record,
            )


def _fits(word: str, result: Result, results: Sequence[Result]) -> bool:
    assert result.compile is not None
    if "=" not in word:
        name = word.rstrip("/").rpartition("/")[2]
        return bool(name) and (result.id.startswith(name) or result.compile.entry.startswith(name))
    key, _, value = word.partition("=")
    if key in _KEYS:
        return _text(_KEYS[key](result)).lower() == value.lower()
    if not any(key in other.variant.tunables for other in results):
        known = (*_KEYS, *dict.fromkeys(name for other in results for name in other.variant.tunables))
        raise ConfigError(f"{word}: unknown key '{key}'{hint(key, known)}")
    return key in result.variant.tunables and _text(result.variant.tunables[key]).lower() == value.lower()


def _instead(word: str, left: Sequence[Result]) -> str:
    key, equals, _ = word.partition("=")
    if not equals:
        ids = dict.fromkeys(result.id for result in left)
        return f" (by id; there are {_listed(ids)})"
    if key in _KEYS:
        return f" (there is {_listed(dict.fromkeys(_text(_KEYS[key](result)) for result in left))})"
    values = [result.variant.tunables[key] for result in left if key in result.variant.tunables]
    return (
        f" (there is {_listed(dict.fromkeys(_text(value) for value in values)) or 'none with this tunable'})"
    )


def _distinguishing(found: Sequence[Result]) -> str:
    """Keys in which they differ, with their values."""
    shared = set.intersection(*(set(result.variant.tunables) for result in found))
    values = {
        **{key: {_text(value(result)) for result in found} for key, value in _KEYS.items()},
        **{name: {_text(result.variant.tunables[name]) for result in found} for name in sorted(shared)},
    }
    differing = [f"{key} ({_listed(sorted(each))})" for key, each in values.items() if len(each) > 1]
    return f"one of {'; '.join(differing)}" if differing else "the path of its store entry"


def _point(result: Result) -> tuple[object, ...]:
    return tuple(sorted(result.task.dimensions.items())), tuple(sorted(result.variant.tunables.items()))


def _created(result: Result) -> str:
    assert result.compile is not None
    return result.compile.provenance.created


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f", … and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def _text(value: object) -> str:
    """As one types it: truth values in small letters, as in a yaml."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def facts(root: Path, words: Sequence[str], lines: int) -> Iterator[str]:
    """Identity and facts of one variant, then its hottest source lines."""
    result = one(stored(root), _words(words))
    yield heading(result)
    yield from identity(result)
    yield from facts_lines(result)
    yield from hot_lines(line_counts(_listings(root, result)), _texts(root, result), lines)


def code(root: Path, words: Sequence[str]) -> Iterator[str]:
    """Every instruction of one variant with its class and source line."""
    result = one(stored(root), _words(words))
    texts = _texts(root, result)
    for listing in _listings(root, result):
        yield from listing_lines(listing, texts)


def difference(root: Path, one_words: str, other_words: str) -> Iterator[str]:
    """Facts, classes and source lines in which two variants differ, then the code function by function."""
    first, second = _pair(root, one_words, other_words)
    left, right = _listings(root, first), _listings(root, second)
    yield from _summary(first, second, left, right)
    if {Path(listing.file).suffix for listing in left} != {Path(listing.file).suffix for listing in right}:
        yield "another instruction set: the code is not compared"
        return
    for found in differences(left, right):
        yield from difference_lines(found)


def difference_summary(root: Path, one_words: str, other_words: str) -> Iterator[str]:
    """Facts, classes and source lines in which two variants differ."""
    first, second = _pair(root, one_words, other_words)
    yield from _summary(first, second, _listings(root, first), _listings(root, second))


def _pair(root: Path, one_words: str, other_words: str) -> tuple[Result, Result]:
    results = stored(root)
    return one(results, _words([one_words])), one(results, _words([other_words]))


def _summary(
    first: Result, second: Result, left: Sequence[Listing], right: Sequence[Listing]
) -> Iterator[str]:
    yield f"--- {heading(first)}"
    yield f"+++ {heading(second)}"
    yield from fact_differences(first, second)
    yield from line_differences(line_counts(left), line_counts(right))


class Page(Record, frozen=True, kw_only=True):
    """Markdown over all variants that fit, one for each target."""

    root: Path
    words: tuple[str, ...]
    pair: tuple[str, str] | None
    """Two variants whose difference is shown as an example."""
    command: str
    """Named on the first line."""

    def lines(self) -> Iterator[str]:
        """The page; raises ConfigError if a variant did not compile."""
        example = None
        if self.pair:
            command = f"kernelmill code diff {shlex.join(self.pair)}"
            example = CodeExample(command=command, lines=tuple(difference(self.root, *self.pair)))
        texts = functools.partial(_texts, self.root)
        yield from report(self._subjects(), texts, command=self.command, example=example)

    def written(self, out: Path) -> Iterator[str]:
        """Write the page, and say so."""
        write_atomic(out, "".join(f"{line}\n" for line in self.lines()).encode())
        yield f"{out}: {counted(len(self._subjects()), 'compiled kernel')}"

    def _subjects(self) -> list[ReportedKernel]:
        found = matching(stored(self.root), _words(self.words))
        failed = [result for result in found if result.compiled is None]
        if failed:
            raise ConfigError(f"{heading(failed[0])}: did not compile, nothing to report")
        return [_subject(self.root, result) for result in found]


def _subject(root: Path, result: Result) -> ReportedKernel:
    listings = _listings(root, result)
    reasons = [listing.without_lines for listing in listings if listing.without_lines]
    return ReportedKernel(
        result=result, lines=line_counts(listings), without_lines=reasons[0] if reasons else None
    )


def _words(arguments: Sequence[str]) -> list[str]:
    """Words may stand in one argument or in several."""
    return [word for argument in arguments for word in argument.split()]


def _listings(root: Path, result: Result) -> tuple[Listing, ...]:
    folder = result.folder("compile")
    assert folder is not None and result.compiled is not None
    if not (root / folder).is_dir():
        raise StoreError(
            f"{root / folder}: the files of this variant are gone: snakemake --cores all compile"
        )
    return read_listings(result.compiled, root / folder)


def _texts(root: Path, result: Result) -> SourceTexts:
    """Sources of this checkout, where they are those that were compiled; what was written is in the store."""
    spec_file = spec_path(root, "compile", result.task.compile)
    if not spec_file.is_file():
        return SourceTexts(())
    implementation = read_record(spec_file, CompileSpec).implementations[result.variant.implementation]
    if result.variant.written:
        folder = root_of(result.variant, root)
        return SourceTexts(path for path in sorted(folder.rglob("*")) if path.is_file())
    sources = Sources(Path.cwd())
    try:
        if sources.implementation(implementation) != result.variant.source_digest:
            return SourceTexts(())
    except (KernelmillError, OSError):  # the source or the package is not here any more
        return SourceTexts(())
    return SourceTexts(backend(result.variant.backend).sources(implementation, Path.cwd()))
