"""Rewrite the best sources so far, one change at a time.

The first round measures the starting points: the declared defaults, or the sources of a folder. Each later
round takes the variants that passed, the fastest first, and applies the rewrites that their diagnosis calls
for; then other rewrites, and last those that only did harm so far. No source is tried twice.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from pipeline.backends.registry import backend
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.diagnosed import Finding
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, SourceRecord, Unfit, WrittenSource
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.rewrite_catalogue import LANGUAGE, TRANSFORMATIONS
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategies.candidates import Candidates, candidates_of, default_points
from pipeline.search.strategy import Budget, SearchInputs, Strategy, WriterContext, settings_of
from pipeline.search.trial_diagnosis import diagnosed

CALLED_FOR_BY, UNCALLED = "called_for_by", "nothing"
"""Key of an author's details: the finding that called for the rewrite, or `nothing`."""


_RIGHT = (Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE, Outcome.UNSTABLE_TIMING)
"""Outcomes of variants that verified; those without a time come last."""


class MutateSettings(Record, frozen=True, kw_only=True):
    """Settings of the strategy `mutate`."""

    folder: str | None = None
    """Folder of sources to start from, relative to the repository; null: the declared sources."""
    implementation: str | None = None
    """Implementation whose source is rewritten; null: every Triton implementation."""

    def __post_init__(self) -> None:
        """Raise ValueError for an empty folder."""
        if self.folder == "":
            raise ValueError("folder: empty; expected a folder of sources, or null")


class _Call(NamedTuple):
    """A transformation, and the finding of the parent that calls for it."""

    transformation: Transformation
    finding: Finding | None


def propose(
    space: Space, history: Sequence[Trial], budget: Budget, writer: WriterContext
) -> list[Proposal | Unfit]:
    """The starting points in round 0, then as many rewrites as the round may have."""
    settings = budget.settings(MutateSettings, "mutate")
    names = [name for name in writer.spec.implementations if _is_open(name, writer, settings)]
    if budget.round == 0:
        return _start(settings, names, space, budget, writer)
    tried = {writer.text(trial.variant) for trial in history if trial.variant.written}
    parents = _parents(history, names, written=settings.folder is not None)
    found = (
        proposal
        for called in (True, False)
        for parent in parents
        for proposal in _children(parent, _calls(parent, called=called), tried, writer)
    )
    return _harmless_first(found, _harmful(history, writer.records), budget.variants)


def _harmless_first(
    found: Iterable[Proposal], harmful: Set[tuple[str, str]], count: int | None
) -> list[Proposal | Unfit]:
    """The first ones; those of a harmful kind only if there are no others."""
    first: list[Proposal | Unfit] = []
    last: list[Proposal | Unfit] = []
    for proposal in found:
        assert proposal.source is not None
        kind = proposal.implementation, proposal.source.author.name
        (last if kind in harmful else first).append(proposal)
        if len(first) == count:
            break
    return [*first, *last][:count]


def _harmful(history: Sequence[Trial], records: Sequence[SourceRecord]) -> Set[tuple[str, str]]:
    """Implementations with rewrites that always failed or were slower than their parents.

    A child is slower if the intervals of the two times do not overlap.
    """
    trials = {trial.variant.id: trial for trial in history}
    written = {
        (trial.variant.implementation, trial.variant.source_digest): trial
        for trial in history
        if trial.variant.written
    }
    harmed: dict[tuple[str, str], list[bool]] = {}
    for record in records:
        child = written.get((record.implementation, record.entry))
        parents = [trials[each] for each in record.parents if each in trials]
        harm = _harm(child, parents[0]) if child and parents else None
        if record.author.writer == "mutate" and harm is not None:
            harmed.setdefault((record.implementation, record.author.name), []).append(harm)
    return {kind for kind, found in harmed.items() if all(found)}


def _harm(child: Trial, parent: Trial) -> bool | None:
    """Whether the child is worse; None if it was not measured."""
    if child.outcome not in _RIGHT:
        return True
    if child.seconds is None or parent.seconds is None:
        return None
    return child.seconds.low > parent.seconds.high


def _start(
    settings: MutateSettings, names: Sequence[str], space: Space, budget: Budget, writer: WriterContext
) -> list[Proposal | Unfit]:
    if settings.folder is not None:
        given = Candidates(folder=settings.folder, implementation=settings.implementation)
        return candidates_of(given, space, budget, writer)
    points = default_points(space)
    if not names:
        known = ", ".join(writer.spec.implementations)
        raise ConfigError(
            f"search=mutate rewrites Triton sources: {writer.spec.kernel} has none for this target "
            f"(it has: {known}); choose a GPU target, such as hardware=h200"
        )
    return [Proposal(implementation=name, tunables=points[name]) for name in names if name in points]


def _is_open(name: str, writer: WriterContext, settings: MutateSettings) -> bool:
    """Whether the source of the implementation can be rewritten, and the settings do not exclude it."""
    implementation = writer.spec.implementations[name]
    known = implementation.call is None and backend(implementation.backend).language == LANGUAGE
    return known and settings.implementation in (None, name)


def _parents(history: Sequence[Trial], names: Sequence[str], *, written: bool) -> list[Trial]:
    """Variants that passed, the fastest first; without measurements, in the order of the history.

    With `written`, only descendants of given sources; the declared source is measured for comparison.
    """
    passed = [
        trial
        for trial in history
        if trial.variant.implementation in names
        and (trial.variant.written or not written)
        and trial.outcome in _RIGHT
    ]
    return sorted(passed, key=lambda trial: trial.seconds.value if trial.seconds else math.inf)


def _calls(parent: Trial, *, called: bool) -> list[_Call]:
    """Transformations that the diagnosis calls for, the largest gain first; not `called`: the others."""
    calls = [_Call(each, _finding(each, parent.diagnosis)) for each in TRANSFORMATIONS.values()]
    if not called:
        return [each for each in calls if each.finding is None]
    wanted = [each for each in calls if each.finding is not None]
    order = {finding.code.value: number for number, finding in enumerate(parent.diagnosis)}
    return sorted(wanted, key=lambda call: _urgency(call, order))


def _finding(transformation: Transformation, diagnosis: Sequence[Finding]) -> Finding | None:
    """The finding with the largest possible gain among those that call for the transformation."""
    asking = [finding for finding in diagnosis if finding.code in transformation.called_for_by]
    return max(asking, key=lambda finding: finding.gain_at_most or 1.0, default=None)


def _urgency(call: _Call, order: Mapping[str, int]) -> tuple[float, int]:
    assert call.finding is not None
    return -(call.finding.gain_at_most or 1.0), order[call.finding.code.value]


def _children(
    parent: Trial, calls: Sequence[_Call], tried: set[str], writer: WriterContext
) -> Iterator[Proposal]:
    """Alternates between the kinds of rewrite, so that a short round tries each of them."""
    name, tunables = parent.point
    derived = _is_derived(parent, writer.records)
    source = Source(text=writer.text(parent.variant), limits=writer.spec.limits | _limits(writer))
    kinds = [[(call, rewrite) for rewrite in call.transformation.find(source)] for call in calls]
    for found in itertools.zip_longest(*kinds):
        for each in found:
            if each is not None and each[1].text not in tried:
                call, rewrite = each
                tried.add(rewrite.text)
                written = _source(rewrite, call, parent, derived=derived)
                yield Proposal(implementation=name, tunables=tunables, source=written)


def _limits(writer: WriterContext) -> dict[str, int]:
    return writer.spec.brief.target.limits if writer.spec.brief else {}


def _is_derived(parent: Trial, records: Sequence[SourceRecord]) -> bool:
    """Whether its source is the declared one, or was made from it."""
    return not parent.variant.written or any(
        record.author.derived for record in records if record.entry == parent.variant.source_digest
    )


def _source(rewrite: Rewrite, call: _Call, parent: Trial, *, derived: bool) -> WrittenSource:
    details = {"line": str(rewrite.line), CALLED_FOR_BY: UNCALLED, "keeps": call.transformation.keeps}
    if call.finding is not None:
        code = call.finding.code
        details |= {
            CALLED_FOR_BY: f"{code.value} ({call.finding.basis})",
            "finding": call.finding.sentence,
            "because": call.transformation.called_for_by[code],
        }
    author = Author(writer="mutate", name=rewrite.name, details=details, derived=derived)
    return WrittenSource(text=rewrite.text, author=author, parents=(parent.variant.id,))


def inputs(search: Search) -> SearchInputs:
    """The folder to start from."""
    return SearchInputs(folder=settings_of(search, MutateSettings, "mutate").folder)


STRATEGY = Strategy(
    description="The fastest Triton source so far, rewritten in one place as its diagnosis calls for.",
    write=propose,
    settings=MutateSettings,
    inputs=inputs,
    diagnose=diagnosed,
)
