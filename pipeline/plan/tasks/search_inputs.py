"""Read what a search needs besides the space: briefs, folders of sources, and winners to start from."""

import csv
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.plan.tasks.resolution import limits_of
from pipeline.records.configuration.hardware import Hardware, Target
from pipeline.records.configuration.kernel import Implementation, Kernel, TunableValue
from pipeline.records.configuration.search_settings import Start
from pipeline.records.errors import ConfigError, FormatError
from pipeline.records.record import Record, digest_bytes
from pipeline.records.search.brief import Brief, Exemplar
from pipeline.search.strategy import BriefRequest, Winners

TABLES = (".csv",)
NEEDED = ("kernel", "workload", "hardware", "dtype", "implementation", "configuration")
"""Columns of a table of winners that are read."""


def starts(
    winners: Winners,
    implementations: Mapping[str, Implementation],
    wanted: Mapping[str, str],
    root: Path,
    *,
    setting: str = "search.transfer.winners",
) -> tuple[tuple[Start, ...], tuple[Path, ...]]:
    """The points that the search starts from, the most similar task first; and the files that were read.

    `wanted` names the task: kernel, workload, hardware and dtype. A table of winners names the kernel of each
    row, and only rows of the same kernel count. Recorded results of another tuner name none: their tunables
    are matched by name.

    Raises
    ------
    ConfigError
        No path is given, there is no such file, one cannot be read, or none has a winner for this kernel.
    """
    if winners.path is None:
        raise ConfigError(f"{setting}: missing; expected a winners.csv, as aggregate writes it")
    where = f"{setting}={winners.path}"
    pattern = Path(winners.path)
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
            ranked += read(path, implementations, wanted, winners.at_most)
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
    return tuple(kept[: winners.at_most]), files


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


class BriefSubject(Record, frozen=True, kw_only=True):
    """What a brief is about."""

    search: str
    """Name of the strategy, for messages."""
    request: BriefRequest | None
    """None: the brief is only for diagnosing."""
    kernel: Kernel
    implementations: dict[str, Implementation]
    """Those that fit the target."""
    hardware: Hardware
    reference_digest: str
    kernels: Mapping[str, Kernel]
    """All that are declared."""


def brief_of(subject: BriefSubject, root: Path, digest: Callable[[Implementation], str]) -> Brief:
    """The brief; `digest` gives the digest of an implementation's sources.

    Raises
    ------
    ConfigError
        The source to start from is not there, or no implementation has one that could be changed.
    """
    kernel, hardware = subject.kernel, subject.hardware
    if subject.request and all(each.call is not None for each in subject.implementations.values()):
        raise ConfigError(
            f"search={subject.search}: {kernel.name}: no implementation for {hardware.name} has a source here"
        )
    return Brief(
        description=kernel.description,
        category=kernel.category,
        reference=kernel.reference,
        reference_digest=subject.reference_digest,
        cost=kernel.cost,
        deterministic=kernel.deterministic,
        special_values=kernel.special_values,
        target=Target(
            kind=hardware.kind,
            architecture=hardware.architecture,
            limits=limits_of(hardware),
            features=hardware.features,
        ),
        device=hardware.facts.get("model"),
        peaks=hardware.peaks,
        exemplars=tuple(_exemplars(subject, digest))[: subject.request.exemplars] if subject.request else (),
        start_digest=_start(subject.request, root, f"search.{subject.search}.start")
        if subject.request
        else None,
    )


def _start(request: BriefRequest, root: Path, setting: str) -> str | None:
    if request.start is None:
        return None
    path = (root / request.start).resolve()
    if not path.is_relative_to(root.resolve()) or not path.is_file():
        raise ConfigError(
            f"{setting}: {request.start}: no such file; expected a path relative to the repository"
        )
    return digest_bytes(path.read_bytes())


def _exemplars(subject: BriefSubject, digest: Callable[[Implementation], str]) -> Iterator[Exemplar]:
    """Other kernels of the category, for the same backends, with sources in this repository."""
    backends = {each.backend for each in subject.implementations.values()}
    for name, kernel in sorted(subject.kernels.items()):
        if kernel.category != subject.kernel.category or name == subject.kernel.name:
            continue
        for key, implementation in kernel.implementations.items():
            if implementation.call is None and implementation.backend in backends:
                yield Exemplar(
                    kernel=name,
                    implementation=key,
                    source=implementation.source,
                    digest=digest(implementation),
                    origin=implementation.origin,
                    licence=implementation.licence,
                )


def files_of(folder: str, root: Path, *, setting: str) -> dict[str, str]:
    """Name -> digest of the files in a folder, in order, without hidden ones and those that start with _.

    Raises
    ------
    ConfigError
        It is no folder, it has no file, one cannot be read, or one is a link to a file outside of the folder
        and of the repository, which would be kept, logged and exported as if it were a source.
    """
    path = root / folder
    try:
        if not path.is_dir():
            what = "is a file" if path.exists() else "does not exist"
            raise ConfigError(f"{setting}: {folder}: {what}, expected a folder of sources")
        files = sorted(_plain_files(path, (path.resolve(), root.resolve()), setting))
        if not files:
            raise ConfigError(f"{setting}: {folder}: holds no source, expected one file for each variant")
        return {file.name: digest_bytes(file.read_bytes()) for file in files}
    except OSError as error:
        raise ConfigError(
            f"{setting}: {error.filename or folder}: cannot be read: {error.strerror}"
        ) from None


def _plain_files(folder: Path, homes: tuple[Path, ...], setting: str) -> Iterator[Path]:
    """Regular files; folders, devices and the like are skipped."""
    for file in folder.iterdir():
        if file.name[0] in "._":
            continue
        if file.is_symlink():
            _check_link(file, homes, setting)
        if stat.S_ISREG(file.stat().st_mode):
            yield file


def _check_link(link: Path, homes: tuple[Path, ...], setting: str) -> None:
    found = link.resolve()
    if not found.exists():
        raise ConfigError(f"{setting}: {link}: a link to {found}, which does not exist: remove the link")
    if not any(found.is_relative_to(home) for home in homes):
        raise ConfigError(
            f"{setting}: {link}: a link to {found}, outside of the repository: put a copy in its place"
        )
