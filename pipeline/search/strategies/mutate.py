"""Rewrite the best sources so far, one change at a time. In: the history. Out: rewritten sources.

The first round measures where it starts from: the declared defaults, and the sources of a folder if one is
named. Each later round takes what passed, the fastest first, and changes what its diagnosis calls for; what
no diagnosis calls for comes later, what did nothing but harm so far last. What was tried, with whatever end,
is not tried again.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.results.diagnosed import Finding
from pipeline.records.search.search_trial import Trial
from pipeline.records.search.written_source import Author, Proposal, SourceRecord, Unfit, WrittenSource
from pipeline.search.rewriting.rewrite import Rewrite, Source, Transformation
from pipeline.search.rewriting.rewrite_catalogue import BACKEND, TRANSFORMATIONS
from pipeline.search.spaces.search_space import Space
from pipeline.search.strategies import candidates
from pipeline.search.strategies.candidates import default_points
from pipeline.search.strategy import Budget, Strategy, Workshop
from pipeline.search.trial_diagnosis import diagnosed

CALLED_FOR_BY, UNCALLED = "called_for_by", "nothing"
"""Of a rewrite's author: which finding called for it, and what stands there where none did."""


_RIGHT = (Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE, Outcome.UNSTABLE_TIMING)
"""Of what verified; without a time they come after all others."""


class _Call(NamedTuple):
    """A transformation, and the finding of the parent that calls for it."""

    transformation: Transformation
    finding: Finding | None


def propose(
    space: Space, history: Sequence[Trial], budget: Budget, workshop: Workshop
) -> list[Proposal | Unfit]:
    """So many as the round may have; the same history gives the same ones."""
    if budget.round == 0:
        return _start(space, history, budget, workshop)
    names = [name for name in workshop.spec.implementations if _is_open(name, workshop)]
    tried = {workshop.text(trial.variant) for trial in history if trial.variant.written}
    parents = _parents(history, names, written=bool(workshop.spec.search.folder))
    found = (
        proposal
        for called in (True, False)
        for parent in parents
        for proposal in _children(parent, _calls(parent, called=called), tried, workshop)
    )
    return _harmless_first(found, _harmful(history, workshop.records), budget.variants)


def _harmless_first(
    found: Iterable[Proposal], harmful: Set[tuple[str, str]], count: int | None
) -> list[Proposal | Unfit]:
    """The first ones, those of a harmful kind only where there are no others."""
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
    """Implementation and rewrite of what was tried and always failed, or was slower than its parent.

    The intervals of the two times decide: where they overlap, the rewrite did no harm.
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
    """None where nothing was measured that could tell."""
    if child.outcome not in _RIGHT:
        return True
    if child.seconds is None or parent.seconds is None:
        return None
    return child.seconds.low > parent.seconds.high


def _start(
    space: Space, history: Sequence[Trial], budget: Budget, workshop: Workshop
) -> list[Proposal | Unfit]:
    if workshop.spec.search.folder is not None:
        return candidates.propose(space, history, budget, workshop)
    points = default_points(space)
    names = [name for name in workshop.spec.implementations if _is_open(name, workshop)]
    if not names:
        known = ", ".join(workshop.spec.implementations)
        raise ConfigError(
            f"search=mutate rewrites Triton sources: {workshop.spec.kernel} has none for this target "
            f"(it has: {known}); choose a GPU target, such as hardware=h200"
        )
    return [Proposal(implementation=name, tunables=points[name]) for name in names if name in points]


def _is_open(name: str, workshop: Workshop) -> bool:
    """Whether its source can be rewritten, and is meant."""
    spec = workshop.spec
    implementation = spec.implementations[name]
    known = implementation.call is None and implementation.backend == BACKEND
    return known and spec.search.implementation in (None, name)


def _parents(history: Sequence[Trial], names: Sequence[str], *, written: bool) -> list[Trial]:
    """What passed, the fastest first; where nothing is measured, in the order of the history.

    `written`: only what descends from given sources; the declared one is there to compare with.
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
    """What the parent's diagnosis calls for, the greatest gain first; or, not `called`, all else."""
    calls = [_Call(each, _finding(each, parent.diagnosis)) for each in TRANSFORMATIONS.values()]
    if not called:
        return [each for each in calls if each.finding is None]
    asked = [each for each in calls if each.finding is not None]
    order = {finding.code.value: number for number, finding in enumerate(parent.diagnosis)}
    return sorted(asked, key=lambda call: _urgency(call, order))


def _finding(transformation: Transformation, diagnosis: Sequence[Finding]) -> Finding | None:
    """Of those that call for it the one whose mending can gain most, as far as that is known."""
    asking = [finding for finding in diagnosis if finding.code in transformation.called_for_by]
    return max(asking, key=lambda finding: finding.gain_at_most or 1.0, default=None)


def _urgency(call: _Call, order: Mapping[str, int]) -> tuple[float, int]:
    assert call.finding is not None
    return -(call.finding.gain_at_most or 1.0), order[call.finding.code.value]


def _children(
    parent: Trial, calls: Sequence[_Call], tried: set[str], workshop: Workshop
) -> Iterator[Proposal]:
    """Kinds of change in turn, so that a short round sees each of them."""
    name, tunables = parent.point
    source = Source(text=workshop.text(parent.variant), limits=workshop.spec.limits | _limits(workshop))
    kinds = [[(call, rewrite) for rewrite in call.transformation.find(source)] for call in calls]
    for found in itertools.zip_longest(*kinds):
        for each in found:
            if each is not None and each[1].text not in tried:
                call, rewrite = each
                tried.add(rewrite.text)
                yield Proposal(implementation=name, tunables=tunables, source=_source(rewrite, call, parent))


def _limits(workshop: Workshop) -> dict[str, int]:
    return workshop.spec.brief.target.limits if workshop.spec.brief else {}


def _source(rewrite: Rewrite, call: _Call, parent: Trial) -> WrittenSource:
    details = {"line": str(rewrite.line), CALLED_FOR_BY: UNCALLED, "keeps": call.transformation.keeps}
    if call.finding is not None:
        code = call.finding.code
        details |= {
            CALLED_FOR_BY: f"{code.value} ({call.finding.basis})",
            "finding": call.finding.sentence,
            "because": call.transformation.called_for_by[code],
        }
    author = Author(writer="mutate", name=rewrite.name, details=details)
    return WrittenSource(text=rewrite.text, author=author, parents=(parent.variant.id,))


STRATEGY = Strategy(
    description="The fastest Triton source so far, rewritten in one place as its diagnosis calls for.",
    write=propose,
    diagnose=diagnosed,
)
