"""Look at the machine code of compiled variants: their facts, their code by source line, their differences.

python -m pipeline.cli.machine_code show kernel=matmul hardware=h200 default=true
python -m pipeline.cli.machine_code diff "hardware=h200 num_stages=1" "hardware=h200 num_stages=3"
python -m pipeline.cli.machine_code report kernel=matmul default=true --out report.md

A variant is named as the tables name it: by the beginning of its id, by its compile_folder, or by
key=value words (kernel, workload, hardware, dtype, implementation, default, …, any tunable).
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipeline.backends.listings import read_listings
from pipeline.backends.machine_code.listing import Listing
from pipeline.backends.registry import backend
from pipeline.backends.source_digests import Sources
from pipeline.cli.printing import print_lines
from pipeline.records.errors import ConfigError, KernelmillError, StoreError
from pipeline.records.layout import spec_path
from pipeline.records.record import read_record
from pipeline.records.results import Result
from pipeline.records.specs import CompileSpec
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
from pipeline.report.machine_code.code_report import Example, Subject, report
from pipeline.report.machine_code.source_lines import line_counts
from pipeline.report.machine_code.source_text import SourceTexts
from pipeline.report.machine_code.variant_selection import matching, one, stored
from pipeline.store.atomic import write_atomic
from pipeline.store.sources import root_of

ROOT = Path("artifacts")


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    options.arguments = list(arguments)
    run: Callable[[argparse.Namespace], Iterator[str]] = options.run
    try:
        lines = list(run(options))
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    print_lines(lines)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.cli.machine_code",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the artifact store (default: artifacts)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser("show", help="facts, source lines and code of one variant")
    show.add_argument("variant", nargs="+", metavar="WORD", help="id, folder or key=value")
    show.add_argument("--lines", type=int, default=12, help="source lines to list (default: 12)")
    show.add_argument("--no-code", action="store_true", help="facts and source lines only")
    show.set_defaults(run=_show)
    diff = commands.add_parser("diff", help="how two variants differ")
    diff.add_argument("first", metavar="A", help="words in one argument: 'hardware=h200 num_stages=1'")
    diff.add_argument("second", metavar="B")
    diff.set_defaults(run=_diff)
    report = commands.add_parser("report", help="Markdown over all variants that fit, one for each target")
    report.add_argument("variant", nargs="+", metavar="WORD", help="as for show; several may fit")
    report.add_argument("--diff", nargs=2, metavar=("A", "B"), help="a difference to show as an example")
    report.add_argument("--made-by", help="the command for line 1, where more than this one made it")
    report.add_argument("--out", type=Path, help="file to write (default: the terminal)")
    report.set_defaults(run=_report)
    return parser


def _show(options: argparse.Namespace) -> Iterator[str]:
    """Facts first, then the source lines, then the code."""
    result = one(stored(options.root), _words(options.variant))
    listings = _listings(options.root, result)
    texts = _texts(options.root, result)
    yield heading(result)
    yield from identity(result)
    yield from facts_lines(result)
    yield from hot_lines(line_counts(listings), texts, options.lines)
    if not options.no_code:
        for listing in listings:
            yield from listing_lines(listing, texts)


def _diff(options: argparse.Namespace) -> Iterator[str]:
    """Facts, classes and source lines that differ, then the code function by function."""
    yield from _difference(options.root, options.first, options.second)


def _difference(root: Path, one_words: str, other_words: str) -> Iterator[str]:
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


def _report(options: argparse.Namespace) -> Iterator[str]:
    """To a file or to the terminal."""
    found = matching(stored(options.root), _words(options.variant))
    failed = [result for result in found if result.compiled is None]
    if failed:
        raise ConfigError(f"{heading(failed[0])}: did not compile, nothing to report")
    subjects = [_subject(options.root, result) for result in found]
    command = options.made_by or f"python -m pipeline.cli.machine_code {shlex.join(options.arguments)}"
    example = None
    if options.diff:
        example = Example(
            command=f"python -m pipeline.cli.machine_code diff {shlex.join(options.diff)}",
            lines=tuple(_difference(options.root, *options.diff)),
        )
    page = report(subjects, lambda result: _texts(options.root, result), command=command, example=example)
    if options.out is None:
        yield from page
        return
    write_atomic(options.out, "".join(f"{line}\n" for line in page).encode())
    yield f"{options.out}: {len(subjects)} targets"


def _subject(root: Path, result: Result) -> Subject:
    listings = _listings(root, result)
    reasons = [listing.without_lines for listing in listings if listing.without_lines]
    return Subject(result=result, lines=line_counts(listings), without_lines=reasons[0] if reasons else None)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
