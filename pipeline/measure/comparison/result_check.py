"""Is what is timed what was judged? In: processes of models from elsewhere. Out: nothing, or MemberGone.

A candidate's process never holds an expected value: elements of its results are compared here with those
of `Model`, on content that it meets for the first time after it was timed, in the last call of a batch like
those that were timed. Results that are kept by address or by PyTorch's count of changes are wrong there, as
the content changes without either. Who keeps results by value is right, and faster on what it has seen.
"""

from collections.abc import Sequence
from statistics import median

from pipeline.measure.comparison.rounds import CANDIDATE, fresh_seed
from pipeline.measure.hosting.measuring_messages import Repeated, Sampled
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


class ResultCheck:
    """Made when the candidate is loaded, which is called then."""

    def __init__(self, candidate: Member, others: Sequence[Member]) -> None:
        self._candidate = candidate
        self._eager = next((each for each in others if each.name == EAGER), None)
        self._seed = fresh_seed()
        self._first: Sampled | None = candidate.sample(self._seed) if candidate.is_model else None

    def after(self) -> None:
        """Look again, after it was timed.

        Raises
        ------
        MemberGone
            `nondeterministic`: it returns something else on the same content; `wrong_value`: something else
            than `Model`; `tampered`: it keeps results.
        """
        if self._first is None:
            return
        found = difference(self._first, self._candidate.sample(self._seed), integers=True)
        if found is not None:
            raise MemberGone(
                CANDIDATE, Outcome.NONDETERMINISTIC, f"after the timed calls, on equal inputs: {found}"
            )
        if self._eager is not None:
            seed = fresh_seed()
            ours = self._candidate.sample(seed)
            found = difference(self._eager.sample(seed), ours, integers=False)
            if found is not None:
                raise MemberGone(
                    CANDIDATE, Outcome.WRONG_VALUE, f"compared with Model after the timed calls: {found}"
                )
        reason = _keeps_results(self._candidate.repeat(fresh_seed()))
        if reason is not None:
            raise MemberGone(CANDIDATE, Outcome.TAMPERED, reason)


def _keeps_results(repeated: Repeated) -> str | None:
    pairs = list(zip(repeated.fresh, repeated.seen, strict=True))
    longer = [fresh > FASTER * seen + FASTER_SECONDS for fresh, seen in pairs]
    if len(pairs) < PAIRS or sum(longer) < AGREEING * len(pairs):
        return None
    return (
        f"a call takes {median(repeated.seen):.3g} s on inputs that it has just seen, "
        f"{median(repeated.fresh):.3g} s if one element is new: it keeps results"
    )
