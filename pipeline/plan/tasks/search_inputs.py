"""Winners of other tasks, for a search that begins with them. In: paths, a kernel, a cell. Out: starts.

They are read when the plan is made and stand in the spec of generate, so that a search is a function of what
it was given: a file that changes is another search.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.records.errors import ConfigError, FormatError
from pipeline.records.kernel import Implementation, TunableValue
from pipeline.records.search import Start, Transfer

TABLES = (".csv",)
NEEDED = ("kernel", "workload", "hardware", "dtype", "implementation", "configuration")
"""Columns of a table of winners that are read."""


def starts(
    transfer: Transfer, implementations: Mapping[str, Implementation], wanted: Mapping[str, str], root: Path
) -> tuple[tuple[Start, ...], tuple[Path, ...]]:
    """What the search begins with, the most similar task first; and the files that were read.

    `wanted` names the task: kernel, workload, hardware and dtype. Tables of winners tell their kernel, and
    only the same one counts; recorded results of another tuner do not: their tunables are taken by name.

    Raises
    ------
    ConfigError
        No path is given, no file is there, one cannot be read, or none holds a winner that this kernel
        has a use for.
    """
    if transfer.winners is None:
        raise ConfigError("search.transfer.winners: missing; expected a winners.csv, as aggregate writes it")
    where = f"search.transfer.winners={transfer.winners}"
    pattern = Path(transfer.winners)
    top = Path(pattern.anchor) if pattern.is_absolute() else root
    below = pattern.relative_to(pattern.anchor) if pattern.is_absolute() else pattern
    try:
        found = top.glob(str(below)) if below.parts else ()
        files = tuple(sorted(path for path in found if path.is_file()))
    except (ValueError, OSError) as error:
        raise ConfigError(f"{where}: neither a file nor a pattern: {error}") from None
    if not files:
        raise ConfigError(f"{where}: no such file; expected a winners.csv, as aggregate writes it")
    ranked: list[tuple[tuple[int, int], Start]] = []
    for path in files:
        read = _from_table if path.suffix in TABLES else _from_recorded
        try:
            ranked += read(path, implementations, wanted, transfer.at_most)
        except FormatError as error:
            raise ConfigError(f"{where}: neither a winners.csv nor recorded results: {error}") from None
    if not ranked:
        names = ", ".join(implementations)
        raise ConfigError(
            f"{where}: no winner of {wanted['kernel']} with one of its implementations ({names})"
        )
    ordered = [start for _, start in sorted(ranked, key=lambda each: each[0])]
    distinct = {
        (each.implementation, tuple(sorted(each.tunables.items()))): each for each in reversed(ordered)
    }
    kept = [
        each
        for each in ordered
        if distinct[each.implementation, tuple(sorted(each.tunables.items()))] is each
    ]
    return tuple(kept[: transfer.at_most]), files


def _from_table(
    path: Path,
    implementations: Mapping[str, Implementation],
    wanted: Mapping[str, str],
    at_most: int,  # noqa: ARG001
) -> Iterator[tuple[tuple[int, int], Start]]:
    """Rows of a winners.csv; the same dtype weighs more than the same workload."""
    try:
        with path.open(newline="") as file:
            table = csv.DictReader(file)
            missing = [name for name in NEEDED if name not in (table.fieldnames or ())]
            if missing:
                raise ConfigError(f"{path}: no table of winners: it has no column '{missing[0]}'")
            rows = list(table)
        for number, row in enumerate(rows, start=2):  # the header is line 1
            if any(row[name] is None for name in NEEDED):
                raise ConfigError(f"{path}: line {number}: ends within the row; make the table anew")
            declared = implementations.get(row["implementation"])
            if row["kernel"] != wanted["kernel"] or declared is None:
                continue
            distance = (int(row["dtype"] != wanted["dtype"]), int(row["workload"] != wanted["workload"]))
            of = f"{row['kernel']} {row['workload']} on {row['hardware']}, {row['dtype']}"
            tunables = _tunables(row["configuration"], declared)
            yield distance, Start(implementation=row["implementation"], tunables=tunables, of=of)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: cannot be read as a table of winners: {error}") from None


def _tunables(configuration: str, declared: Implementation) -> dict[str, TunableValue]:
    """`unroll=4 vectorize=True` as values; what is not declared any more is left out."""
    texts = dict(part.split("=", 1) for part in configuration.split() if "=" in part)
    found: dict[str, TunableValue] = {}
    for name, tunable in declared.tunables.items():
        if name in texts:
            known = {str(value): value for value in (*tunable.values, tunable.default)}
            value = known.get(texts[name], _number(texts[name]))
            if value is not None:
                found[name] = value
    return found


def _number(text: str) -> int | float | None:
    """A value that is not declared any more: the nearest that is will do, if it is a number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _from_recorded(
    path: Path,
    implementations: Mapping[str, Implementation],
    wanted: Mapping[str, str],  # noqa: ARG001
    at_most: int,
) -> Iterator[tuple[tuple[int, int], Start]]:
    """The best recorded results, for each implementation that has one of their tunables."""
    recorded = read_recorded(path)
    timed = [each for each in recorded.results if each.median_seconds is not None]
    timed.sort(key=lambda each: each.median_seconds or 0.0)
    for name, declared in implementations.items():
        for rank, result in enumerate(timed[:at_most]):
            tunables = {key: value for key, value in result.tunables.items() if key in declared.tunables}
            if tunables:
                of = f"{recorded.kernel or recorded.source} on {recorded.device or 'an unnamed device'}"
                yield (2, rank), Start(implementation=name, tunables=tunables, of=of)
