"""Is what is timed what was judged? In: processes of models from elsewhere. Out: nothing, or MemberGone.

A candidate's process never holds an expected value: elements of its results are compared here with those
of `Model`, on content that it meets for the first time after it was timed, in the last call of a batch like
those that were timed. Results that are kept by address or by PyTorch's count of changes are wrong there, as
the content changes without either. Who keeps results by value is right, and faster on what it has seen.
"""

from collections.abc import Sequence
from statistics import median

from pipeline.measure.comparison.rounds import CANDIDATE, fresh_seed
from pipeline.measure.hosting.measuring_messages import Repeated
from pipeline.measure.hosting.process_handle import Member, MemberGone
from pipeline.measure.hosting.sampled_outputs import difference
from pipeline.records.outcome import Outcome

EAGER = "eager"
FASTER = 1.5
"""Times that calls on inputs with a new element may take longer than on inputs that were just seen, and"""
FASTER_SECONDS = 1e-5
"""seconds more: the first call after a write."""
PAIRS = 3
"""Fewer are no evidence."""
AGREEING = 0.8
"""Share of the pairs that have to show it."""


def check_results(candidate: Member, others: Sequence[Member], seed: int) -> None:
    """Look at what a model returns after it was timed; `seed`: of the content that it was loaded with.

    Raises
    ------
    MemberGone
        `nondeterministic`: it returns something else on the same content; `wrong_value`: something else than
        `Model`; `tampered`: it keeps results.
    """
    if candidate.first is None:
        return
    found = difference(candidate.first, candidate.sample(seed), integers=True)
    if found is not None:
        reason = f"after the timed calls, on equal inputs: {found}"
        raise MemberGone(CANDIDATE, Outcome.NONDETERMINISTIC, reason)
    eager = next((each for each in others if each.name == EAGER), None)
    if eager is not None:
        fresh = fresh_seed()
        ours = candidate.sample(fresh)
        found = difference(eager.sample(fresh), ours, integers=False)
        if found is not None:
            reason = f"compared with Model after the timed calls: {found}"
            raise MemberGone(CANDIDATE, Outcome.WRONG_VALUE, reason)
    kept = _keeps_results(candidate.repeat(fresh_seed()))
    if kept is not None:
        raise MemberGone(CANDIDATE, Outcome.TAMPERED, kept)


def _keeps_results(repeated: Repeated) -> str | None:
    pairs = list(zip(repeated.fresh, repeated.seen, strict=True))
    longer = [fresh > FASTER * seen + FASTER_SECONDS for fresh, seen in pairs]
    if len(pairs) < PAIRS or sum(longer) < AGREEING * len(pairs):
        return None
    return (
        f"a call takes {median(repeated.seen):.3g} s on inputs that it has just seen, "
        f"{median(repeated.fresh):.3g} s if one element is new: it keeps results"
    )
