"""Evolutionary search: the best variants have offspring by crossover and mutation; it restarts on stagnation.

Steady state: the parents are the best variants since the last restart, of whatever round. After
`stagnation_rounds` rounds without improvement a new population is drawn at random.
"""

from collections.abc import Sequence

from pipeline.records.record import Record, at_least, share
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import Lattice, RoundSpace, Vector
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import TrialLoss, latest_losses


class Evolution(Record, frozen=True, kw_only=True):
    """Settings of the evolutionary search."""

    population: int = 8
    """Number of best variants that may have offspring."""
    tournament: int = 3
    """Tournament size: the best of that many random variants becomes a parent."""
    crossover: float = 1.0
    """Probability that a child has two parents."""
    niche: int = 1
    """Of variants that differ in at most this many tunables, only the best has offspring; 0: all have."""
    random_reset: float = 0.5
    """Probability that a mutated tunable takes any of its values instead of a neighboring one."""
    stagnation_rounds: int = 8
    """Rounds without improvement after which a new random population starts."""

    def __post_init__(self) -> None:
        """Raise ValueError for a population without parents, or a probability outside of 0 to 1."""
        at_least(self, population=2, tournament=1, stagnation_rounds=1, niche=0)
        share(self, "crossover", "random_reset")


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then offspring; random points as long as there are too few parents."""
    settings = budget.settings(Evolution, "evolution")
    round_space = RoundSpace(space, history, budget)
    return round_space.defaults_first(lambda count: _generation(round_space, history, count, settings))


def _generation(
    round_space: RoundSpace, history: Sequence[Trial], count: int, settings: Evolution
) -> list[Point]:
    began = last_restart(history, settings.stagnation_rounds)
    since_restart = [trial for trial in history if trial.round >= began]
    known = sorted((each for each in latest_losses(since_restart) if each.loss is not None), key=_loss)
    apart = _apart(known, settings)
    parents = apart if len(apart) > 1 else known[: settings.population]  # few tunables: one niche
    drawn = max(0, settings.population - len(since_restart)) if len(parents) < settings.population else 0
    points = round_space.draw(count if len(parents) < 2 else min(count, drawn))
    while parents and len(points) < count:
        child = _child(round_space, parents, settings)
        if child is None:
            break
        points.append(child)
    return points + round_space.draw(count - len(points)) if len(points) < count else points


def last_restart(history: Sequence[Trial], stagnation_rounds: int) -> int:
    """The round in which the current population started."""
    began, since, best = 0, 0, float("inf")
    for number in sorted({trial.round for trial in history}):
        losses = [each.loss for each in latest_losses([trial for trial in history if trial.round == number])]
        found = min((loss for loss in losses if loss is not None), default=float("inf"))
        if found < best:
            best, since = found, number
        elif number - since >= stagnation_rounds:
            # The next round draws a population, which is compared only with itself.
            began, since, best = number + 1, number + 1, float("inf")
    return began


def _apart(known: Sequence[TrialLoss], settings: Evolution) -> list[TrialLoss]:
    """The best of each niche; otherwise the population would converge to neighbors of one good variant.

    Clearing, after Petrowski, "A Clearing Procedure as a Niching Method for Genetic Algorithms", 1996.
    """
    kept: list[TrialLoss] = []
    for each in known:
        if len(kept) < settings.population and all(
            _differing(each, other) > settings.niche for other in kept
        ):
            kept.append(each)
    return kept


def _differing(one: TrialLoss, other: TrialLoss) -> int:
    """In how many tunables two variants differ; in all and one more if their implementations differ."""
    (name, first), (other_name, second) = one.trial.point, other.trial.point
    shared = sum(first.get(key) != value for key, value in second.items())
    return shared + (len(first) + 1 if name != other_name else 0)


def _child(round_space: RoundSpace, parents: list[TrialLoss], settings: Evolution) -> Point | None:
    generator = round_space.generator
    one = _chosen(round_space, parents, settings)
    name, tunables = one.trial.point
    lattice = round_space.lattices[name]
    vector = lattice.vector(tunables)
    mates = [each for each in parents if each.trial.point[0] == name and each is not one]
    if mates and generator.random() < settings.crossover:
        other = lattice.vector(generator.choice(mates).trial.point[1])
        vector = tuple(generator.choice(pair) for pair in zip(vector, other, strict=True))
    vector = _mutated(round_space, lattice, vector, settings.random_reset)
    found = lattice.nearest(vector, round_space.taken[name], generator)
    return None if found is None else round_space.take(name, found)


def _chosen(round_space: RoundSpace, parents: list[TrialLoss], settings: Evolution) -> TrialLoss:
    return min(round_space.generator.choices(parents, k=settings.tournament), key=_loss)


def _mutated(round_space: RoundSpace, lattice: Lattice, vector: Vector, random_reset: float) -> Vector:
    """On average one tunable changes, to a neighboring value or to any other one."""
    mutated = list(vector)
    for place, axis in enumerate(lattice.axes):
        if round_space.generator.random() < 1 / len(lattice.axes):
            reset = round_space.generator.random() < random_reset
            others = [step for step in range(len(axis.values)) if step != vector[place]]
            mutated[place] = round_space.generator.choice(others if reset else axis.adjacent(vector[place]))
    return tuple(mutated)


def _loss(each: TrialLoss) -> float:
    assert each.loss is not None
    return each.loss


STRATEGY = Strategy(
    description="The best variants have offspring by crossover and mutation.",
    propose=propose,
    settings=Evolution,
    may_be_wrapped=True,
)
