"""Rewrite the best sources so far, one change at a time. In: the history. Out: rewritten sources.

The first round measures the declared defaults. Each later one takes the fastest variant that passed, and
changes what its diagnosis calls for; where that calls for nothing, everything that can be changed. What was
tried, with whatever end, is not tried again.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.records.history import Trial
from pipeline.records.outcome import Outcome
from pipeline.records.written import Author, Proposal, Unfit, WrittenSource
from pipeline.search.candidates import default_points
from pipeline.search.rewriting import cpp_loops, triton_loops
from pipeline.search.rewriting.rewrite import Rewrite, Transformation
from pipeline.search.space import Space
from pipeline.search.strategy import Budget
from pipeline.search.writer import Workshop

LANGUAGES: Mapping[str, Mapping[str, Transformation]] = {
    ".py": triton_loops.TRANSFORMATIONS,
    ".cpp": cpp_loops.TRANSFORMATIONS,
}
"""Suffix of a source -> what can be done to it."""


def propose(
    space: Space, history: Sequence[Trial], budget: Budget, workshop: Workshop
) -> list[Proposal | Unfit]:
    """So many as the round may have; the same history gives the same ones."""
    names = [name for name in workshop.spec.implementations if _is_open(name, workshop)]
    if budget.round == 0:
        points = default_points(space)
        return [Proposal(implementation=name, tunables=points[name]) for name in names if name in points]
    tried = {workshop.text(trial.variant) for trial in history if trial.variant.written}
    found: Iterator[Proposal | Unfit] = (
        proposal for parent in _parents(history, names) for proposal in _children(parent, tried, workshop)
    )
    return list(itertools.islice(found, budget.variants))


def _is_open(name: str, workshop: Workshop) -> bool:
    """Whether its source can be rewritten, and is meant."""
    spec = workshop.spec
    implementation = spec.implementations[name]
    known = implementation.call is None and Path(implementation.source).suffix in LANGUAGES
    return known and spec.search.implementation in (None, name)


def _parents(history: Sequence[Trial], names: Sequence[str]) -> list[Trial]:
    """What passed, the fastest first; where nothing is measured, in the order of the history."""
    passed = [
        trial
        for trial in history
        if trial.variant.implementation in names
        and trial.outcome in (Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE)
    ]
    return sorted(passed, key=lambda trial: trial.seconds.value if trial.seconds else float("inf"))


def _children(parent: Trial, tried: set[str], workshop: Workshop) -> Iterator[Proposal]:
    """Kinds of change in turn, so that a short round sees each of them."""
    name, tunables = parent.point
    text = workshop.text(parent.variant)
    known = LANGUAGES[Path(workshop.spec.implementations[name].source).suffix]
    kinds = [list(each.find(text)) for each in _called_for(parent, known)]
    for rewrites in itertools.zip_longest(*kinds):
        for rewrite in rewrites:
            if rewrite is not None and rewrite.text not in tried:
                tried.add(rewrite.text)
                yield Proposal(implementation=name, tunables=tunables, source=_source(rewrite, parent))


def _called_for(parent: Trial, known: Mapping[str, Transformation]) -> list[Transformation]:
    codes = {finding.code for finding in parent.diagnosis}
    asked = [each for each in known.values() if each.asked_by & codes]
    return asked or list(known.values())


def _source(rewrite: Rewrite, parent: Trial) -> WrittenSource:
    author = Author(writer="mutate", name=rewrite.name, details={"line": str(rewrite.line)})
    return WrittenSource(text=rewrite.text, author=author, parents=(parent.variant.id,))
