"""Views of the machine code of compiled variants: words that name variants in, lines out.

A variant is named as the tables name it: by the beginning of its id, by its compile_folder, or by
key=value words (kernel, workload, hardware, dtype, implementation, default, any tunable).
"""

import functools
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.backends.listings import read_listings
from pipeline.backends.machine_code.listing import Listing
from pipeline.backends.registry import backend
from pipeline.backends.source_digests import Sources
from pipeline.records.errors import ConfigError, KernelmillError, StoreError
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import CompileSpec
from pipeline.records.record import Record, read_record
from pipeline.records.results.collection import Result
from pipeline.report.machine_code.code_difference import differences
from pipeline.report.machine_code.code_listing import (
    difference_lines,
    fact_differences,
    facts_lines,
    heading,
    hot_lines,
    identity,
    line_differences,
    listing_lines,
)
from pipeline.report.machine_code.code_report import CodeExample, ReportedKernel, report
from pipeline.report.machine_code.source_lines import line_counts
from pipeline.report.machine_code.source_text import SourceTexts
from pipeline.report.machine_code.variant_selection import matching, one, stored
from pipeline.store.atomic import write_atomic
from pipeline.store.stored_sources import root_of


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
    results = stored(root)
    first, second = (one(results, _words([words])) for words in (one_words, other_words))
    yield f"--- {heading(first)}"
    yield f"+++ {heading(second)}"
    yield from fact_differences(first, second)
    left, right = _listings(root, first), _listings(root, second)
    yield from line_differences(line_counts(left), line_counts(right))
    if {Path(listing.file).suffix for listing in left} != {Path(listing.file).suffix for listing in right}:
        yield "another instruction set: the code is not compared"
        return
    for found in differences(left, right):
        yield from difference_lines(found)


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
        yield f"{out}: {len(self._subjects())} targets"

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
