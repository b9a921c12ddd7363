"""Candidates: the sources of a folder as variants, each in place of an implementation's own source.

A file replaces the source of the implementation with its suffix, at the default point of that implementation.
The declared default comes first, so that the gain of the others is visible.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, digest_bytes
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, Unfit, WrittenSource, unfit
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategy import Budget, SearchInputs, Strategy, WriterContext, settings_of


class Candidates(Record, frozen=True, kw_only=True):
    """Settings of the strategy `candidates`."""

    folder: str
    """Folder of sources, relative to the repository."""
    implementation: str | None = None
    """Implementation whose source they replace; null: the one with the suffix of the file."""

    def __post_init__(self) -> None:
        """Raise ValueError for no folder."""
        if not self.folder:
            raise ValueError("folder: empty; expected a folder of sources")


def propose(
    space: Space,
    history: Sequence[Trial],  # noqa: ARG001
    budget: Budget,
    writer: WriterContext,
) -> list[Proposal | Unfit]:
    """The files in the order of their names, as many as the round may have, none of an earlier round.

    Raises
    ------
    ConfigError
        The settings name an implementation that this task does not have, or several have the same suffix.
    StoreError
        A file changed since the plan was made.
    """
    return candidates_of(budget.settings(Candidates, "candidates"), space, budget, writer)


def candidates_of(
    settings: Candidates, space: Space, budget: Budget, writer: WriterContext
) -> list[Proposal | Unfit]:
    """The same for a strategy that starts from a folder."""
    if budget.variants is None and budget.round > 0:
        return []
    points = default_points(space)
    suffixes = _suffixes(settings, writer)
    found = list(_proposals(settings.folder, points, suffixes, writer))
    refused = [each for each in found if isinstance(each, Unfit)] if budget.round == 0 else []
    fitting = [each for each in found if isinstance(each, Proposal)]
    start = budget.round * (budget.variants_per_round or 0)
    stop = None if budget.variants is None else start + budget.variants
    return [*fitting[start:stop], *refused]


def default_points(space: Space) -> dict[str, dict[str, TunableValue]]:
    """The default of each implementation, or its first valid point if the default is not valid here."""
    points: dict[str, dict[str, TunableValue]] = {}
    for each in space.subspaces:
        valid = each.points()
        if valid:
            points[each.implementation] = each.default if each.default in valid else valid[0]
    return points


def _proposals(
    folder: str, points: dict[str, dict[str, TunableValue]], suffixes: dict[str, str], writer: WriterContext
) -> Iterator[Proposal | Unfit]:
    files = writer.spec.files
    named = [suffixes[suffix] for file in files if (suffix := Path(file).suffix) in suffixes]
    for name in dict.fromkeys(named):
        if name in points:
            yield Proposal(implementation=name, tunables=points[name])
    for file, known in files.items():
        author = Author(writer="candidates", name=file)
        place = suffixes.get(Path(file).suffix)
        if place is None or place not in points:
            yield _without_a_place(author, place, suffixes)
            continue
        content = _content(Path(writer.repository, folder, file), known)
        try:
            source = WrittenSource(text=content.decode(), author=author)
        except UnicodeDecodeError as error:
            yield unfit(author, f"not a text: {error.reason} at byte {error.start}", place)
            continue
        yield Proposal(implementation=place, tunables=points[place], source=source)


def _suffixes(settings: Candidates, writer: WriterContext) -> dict[str, str]:
    """Suffix of a file -> the implementation whose source it replaces."""
    spec, wanted = writer.spec, settings.implementation
    where = f"search.{spec.search.strategy}.implementation"
    if wanted is not None and wanted not in spec.implementations:
        known = ", ".join(spec.implementations)
        raise ConfigError(f"{where}: got '{wanted}', this task has {known}")
    found: dict[str, str] = {}
    for name, implementation in spec.implementations.items():
        if implementation.call is not None or wanted not in (None, name):
            continue
        suffix = Path(implementation.source).suffix
        if suffix in found:
            both = f"{found[suffix]} and {name}"
            raise ConfigError(f"{where}: {both} both have {suffix} sources: name one of them")
        found[suffix] = name
    return found


def _without_a_place(author: Author, name: str | None, suffixes: dict[str, str]) -> Unfit:
    """No error: the same folder may serve several targets."""
    if name is not None:
        reason = f"{name} has no valid point on this problem"
    else:
        known = ", ".join(f"{suffix} ({each})" for suffix, each in suffixes.items()) or "none"
        reason = f"no implementation of this task has such a source; there are {known}"
    return Unfit(implementation=name, author=author, failure=Failure(outcome=Outcome.PRUNED, reason=reason))


def _content(path: Path, known: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}; run again") from error
    if digest_bytes(content) != known:
        raise StoreError(f"{path}: changed since the plan was made; run again")
    return content


def inputs(search: Search) -> SearchInputs:
    """The folder."""
    return SearchInputs(folder=settings_of(search, Candidates, "candidates").folder)


STRATEGY = Strategy(
    description="Every source of a folder.", write=propose, settings=Candidates, inputs=inputs
)
