"""What the benchmarks of the pipeline's own cost found: sections in, text for a terminal and a page out.

Each benchmark publishes one section: it is printed, and kept under artifacts/benchmarks/ until
`tests.benchmarks.overhead` makes the page of all.
"""

from collections.abc import Sequence

from pipeline.records.record import Record, read_record, to_json
from pipeline.store.atomic import write_atomic
from tests.benchmarks.machine import where
from tests.paths import ROOT

KEPT = ROOT / "artifacts" / "benchmarks"
PAGE = ROOT / "docs" / "results" / "overhead.md"
TOOLS = ("snakemake", "torch", "triton")


class Figure(Record, frozen=True, kw_only=True):
    """One goal and how far it is."""

    what: str
    found: str
    aim: str
    met: bool


class Table(Record, frozen=True, kw_only=True):
    """Where the time goes."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Section(Record, frozen=True, kw_only=True):
    """What one benchmark found."""

    name: str
    title: str
    command: str
    measured: str
    """Date, machine, versions, load."""
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


def publish(section: Section) -> None:
    """Print it, and keep it for the page."""
    print(markdown(section), flush=True)
    write_atomic(KEPT / f"{section.name}.json", to_json(section))


def kept(names: Sequence[str]) -> list[Section]:
    """Those of these sections that were measured in this checkout, in this order."""
    paths = [KEPT / f"{name}.json" for name in names]
    return [read_record(path, Section) for path in paths if path.is_file()]


def measured() -> str:
    """Where and when, for a section that was just measured."""
    return where(TOOLS)


def markdown(section: Section) -> str:
    """One section of the page."""
    parts = [f"## {section.title}", f"```sh\n{section.command}\n```", section.measured]
    parts += [f"{figure.what}: **{figure.found}** (goal: {figure.aim})  " for figure in section.figures]
    for table in section.tables:
        parts += [f"{table.title}:", markdown_table(table.heading, table.rows)]
    return "\n\n".join([*parts, *section.notes]) + "\n"


def page(sections: Sequence[Section], introduction: str) -> str:
    """All figures in one table, then the sections."""
    heading = ("measurement", "result", "goal", "met", "command")
    rows = [
        (figure.what, figure.found, figure.aim, "yes" if figure.met else "no", f"`{section.command}`")
        for section in sections
        for figure in section.figures
    ]
    return "\n".join([introduction, markdown_table(heading, rows), "", *map(markdown, sections)])


def seconds(value: float) -> str:
    """As tables show them."""
    return f"{value:.2f} s"


def markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """The first `left` columns hold words, the others numbers."""
    lines = [heading, ["---"] * left + ["---:"] * (len(heading) - left), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
