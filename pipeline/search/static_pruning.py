"""Static pruning, around any strategy: facts of a binary in, the reason not to measure it out.

The rules stand in the search's settings (`Prune`) and verify obeys them, before anything runs. A rule can be
wrong, so a share of what it would drop is measured all the same: what it loses is then known, not believed.
"""

from collections.abc import Iterator, Sequence

from pipeline.records.configuration.pruning import Prune, PruningReasons, Scale
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.variant import Variant
from pipeline.search.bound_pruning import grounds

_DIGITS = 8  # hexadecimal, of a variant's id: its share of the whole is as good as drawn at random


def judge(spec: VerifySpec, records: Sequence[CompileRecord], scale: Scale | None) -> PruningReasons:
    """What all rules of the task say of a round's variants, those that are measured anyway included."""
    if spec.prune is None:
        return PruningReasons(unwanted={}, undecided={})
    found = grounds(spec, records, scale)
    unwanted = dict(found.unwanted)
    for each in records:
        why = reason(each.result.facts, spec.prune) if isinstance(each.result, Compiled) else None
        if why is not None:
            unwanted[each.variant.id] = why
    undecided = {identity: why for identity, why in found.undecided.items() if identity not in unwanted}
    return PruningReasons(unwanted=unwanted, undecided=undecided)


def reason(facts: StaticFacts, prune: Prune) -> str | None:
    """Why a variant is not worth measuring; None where it is, or where its backend cannot know the fact."""
    return next(_reasons(facts, prune), None)


def is_measured_anyway(variant: Variant, prune: Prune) -> bool:
    """Whether it is among those that show what dropping loses; the same ones whenever one looks."""
    return int(variant.id[:_DIGITS], 16) / float(16**_DIGITS) < prune.measured_anyway


def _reasons(facts: StaticFacts, prune: Prune) -> Iterator[str]:
    spills, local, occupancy = facts.spills, facts.local_memory, facts.occupancy_bound
    if prune.spills_at_most is not None and spills is not None and spills > prune.spills_at_most:
        yield f"spills {spills} bytes per thread, search.prune allows {prune.spills_at_most}"
    if prune.local_memory_at_most is not None and local is not None and local > prune.local_memory_at_most:
        yield f"{local} bytes of local memory per thread, search.prune allows {prune.local_memory_at_most}"
    if (
        prune.occupancy_at_least is not None
        and occupancy is not None
        and occupancy < prune.occupancy_at_least
    ):
        yield f"estimated occupancy {occupancy:.0%}, search.prune wants {prune.occupancy_at_least:.0%}"
