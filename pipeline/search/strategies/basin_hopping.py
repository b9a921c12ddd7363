"""Local search: neighbors of the best variants; in a local optimum, several tunables change at once.

Wales, Doye, "Global Optimization by Basin-Hopping", J. Phys. Chem. A 101, 1997.
"""

from collections.abc import Sequence

from pipeline.records.record import Record, at_least
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import RoundSpace
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import TrialLoss, latest_losses


class BasinHopping(Record, frozen=True, kw_only=True):
    """Settings of the local search that jumps out of local optima."""

    start: int = 8
    """Random points before the first descent."""
    jump: int = 3
    """Number of tunables that change at once if no neighbor is better."""

    def __post_init__(self) -> None:
        """Raise ValueError for a search without a start or a jump."""
        at_least(self, start=1, jump=1)


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then neighbors of the best; jumps from it once all of them were tried."""
    settings = budget.settings(BasinHopping, "basin_hopping")
    round_space = RoundSpace(space, history, budget)
    return round_space.defaults_first(lambda count: _steps(round_space, history, count, settings))


def _steps(
    round_space: RoundSpace, history: Sequence[Trial], count: int, settings: BasinHopping
) -> list[Point]:
    known = sorted((each for each in latest_losses(history) if each.loss is not None), key=_loss)
    points = round_space.draw(min(count, max(0, settings.start - len(history))))
    if known:
        # Two descents at once: a noisy measurement may hide which of the two best is better.
        for centre in known[:2]:
            points += _neighbors_of(round_space, centre, count - len(points))
        while len(points) < count:
            jumped = _jump(round_space, known[0], settings.jump)
            if jumped is None:
                break
            points.append(jumped)
    return points + round_space.draw(count - len(points)) if len(points) < count else points


def _neighbors_of(round_space: RoundSpace, centre: TrialLoss, count: int) -> list[Point]:
    name, tunables = centre.trial.point
    lattice = round_space.lattices[name]
    left = [
        vector
        for vector in lattice.neighbors(lattice.vector(tunables))
        if vector not in round_space.taken[name]
    ]
    round_space.generator.shuffle(left)
    return [round_space.take(name, vector) for vector in left[: max(count, 0)]]


def _jump(round_space: RoundSpace, centre: TrialLoss, tunables_at_once: int) -> Point | None:
    name, tunables = centre.trial.point
    lattice = round_space.lattices[name]
    vector = list(lattice.vector(tunables))
    chosen = round_space.generator.sample(range(len(vector)), min(tunables_at_once, len(vector)))
    for place in chosen:
        vector[place] = round_space.generator.randrange(len(lattice.axes[place].values))
    found = lattice.nearest(tuple(vector), round_space.taken[name], round_space.generator)
    return None if found is None else round_space.take(name, found)


def _loss(each: TrialLoss) -> float:
    assert each.loss is not None
    return each.loss


STRATEGY = Strategy(
    description="Local search that jumps when no neighbor is better.",
    propose=propose,
    settings=BasinHopping,
    may_be_wrapped=True,
)
