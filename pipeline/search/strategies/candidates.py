"""Sources of a folder as variants. In: the folder's files, as the plan saw them. Out: a proposal for each.

A file takes the place of the source of the implementation that has its suffix, at that implementation's
default point. The declared default comes first: it shows what the others gain.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest_bytes
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, Unfit, WrittenSource, unfit
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategy import Budget, Strategy, Workshop


def propose(
    space: Space,
    history: Sequence[Trial],  # noqa: ARG001
    budget: Budget,
    workshop: Workshop,
) -> list[Proposal | Unfit]:
    """So many as the round may have, in the order of the files' names; none that an earlier round had.

    Raises
    ------
    ConfigError
        The search names an implementation that this task has not, or several have one suffix.
    StoreError
        A file is not what it was when the plan was made.
    """
    if budget.variants is None and budget.round > 0:
        return []
    points = default_points(space)
    suffixes = _suffixes(workshop)
    found = list(_proposals(points, suffixes, workshop))
    refused = [each for each in found if isinstance(each, Unfit)] if budget.round == 0 else []
    fitting = [each for each in found if isinstance(each, Proposal)]
    start = budget.round * (budget.variants_per_round or 0)
    stop = None if budget.variants is None else start + budget.variants
    return [*fitting[start:stop], *refused]


def default_points(space: Space) -> dict[str, dict[str, TunableValue]]:
    """The default of each implementation, or its first valid point where that is not valid here."""
    points: dict[str, dict[str, TunableValue]] = {}
    for each in space.subspaces:
        valid = each.points()
        if valid:
            points[each.implementation] = each.default if each.default in valid else valid[0]
    return points


def _proposals(
    points: dict[str, dict[str, TunableValue]], suffixes: dict[str, str], workshop: Workshop
) -> Iterator[Proposal | Unfit]:
    files = workshop.spec.files
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
        content = _content(Path(workshop.repository, workshop.spec.search.folder or "", file), known)
        try:
            source = WrittenSource(text=content.decode(), author=author)
        except UnicodeDecodeError as error:
            yield unfit(author, f"not a text: {error.reason} at byte {error.start}", place)
            continue
        yield Proposal(implementation=place, tunables=points[place], source=source)


def _suffixes(workshop: Workshop) -> dict[str, str]:
    """Suffix of a file -> the implementation whose place it takes."""
    spec = workshop.spec
    wanted = spec.search.implementation
    if wanted is not None and wanted not in spec.implementations:
        known = ", ".join(spec.implementations)
        raise ConfigError(f"search.implementation: got '{wanted}', this task has {known}")
    found: dict[str, str] = {}
    for name, implementation in spec.implementations.items():
        if implementation.call is not None or wanted not in (None, name):
            continue
        suffix = Path(implementation.source).suffix
        if suffix in found:
            both = f"{found[suffix]} and {name}"
            raise ConfigError(f"search.implementation: {both} both have {suffix} sources: name one of them")
        found[suffix] = name
    return found


def _without_a_place(author: Author, name: str | None, suffixes: dict[str, str]) -> Unfit:
    """What another target may well have a place for is no mistake."""
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


STRATEGY = Strategy(description="Every source of a folder.", write=propose)
