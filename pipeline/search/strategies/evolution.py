"""Evolution: the best variants have offspring, by crossover and by steps; at rest it begins anew.

Steady state: parents are the best of the present epoch, whatever round they are of. An epoch ends when so
many rounds brought nothing better; then a population is drawn at random, for only a jump leaves a valley.
"""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import Evolution
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.lattice import Field, Lattice, Vector
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import Lesson, lessons


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then offspring; strangers where there is nobody to have any."""
    settings = budget.settings(Evolution, "evolution")
    field = Field(space, history, budget)
    return field.defaults_first(lambda count: _generation(field, history, count, settings))


def _generation(field: Field, history: Sequence[Trial], count: int, settings: Evolution) -> list[Point]:
    began = epoch(history, settings.patience)
    epoch_trials = [trial for trial in history if trial.round >= began]
    known = sorted((each for each in lessons(epoch_trials) if each.loss is not None), key=_loss)
    apart = _apart(known, settings)
    parents = apart if len(apart) > 1 else known[: settings.population]  # of few tunables all are relatives
    drawn = max(0, settings.population - len(epoch_trials)) if len(parents) < settings.population else 0
    strangers = count if len(parents) < 2 else min(count, drawn)
    points = field.draw(strangers)
    while parents and len(points) < count:
        child = _child(field, parents, settings)
        if child is None:
            break
        points.append(child)
    return points + field.draw(count - len(points)) if len(points) < count else points


def epoch(history: Sequence[Trial], patience: int) -> int:
    """The round in which the present population began."""
    began, since, best = 0, 0, float("inf")
    for number in sorted({trial.round for trial in history}):
        losses = [each.loss for each in lessons([trial for trial in history if trial.round == number])]
        found = min((loss for loss in losses if loss is not None), default=float("inf"))
        if found < best:
            best, since = found, number
        elif number - since >= patience:
            # The next round draws a population; what it is compared with starts over.
            began, since, best = number + 1, number + 1, float("inf")
    return began


def _apart(known: Sequence[Lesson], settings: Evolution) -> list[Lesson]:
    """The best of each niche: relatives of one good variant would soon be all that is left.

    Clearing, after Petrowski, "A Clearing Procedure as a Niching Method for Genetic Algorithms", 1996.
    """
    kept: list[Lesson] = []
    for each in known:
        if len(kept) < settings.population and all(
            _differing(each, other) > settings.niche for other in kept
        ):
            kept.append(each)
    return kept


def _differing(one: Lesson, other: Lesson) -> int:
    """In how many tunables two variants differ; one more where they are of two implementations."""
    (name, first), (other_name, second) = one.trial.point, other.trial.point
    shared = sum(first.get(key) != value for key, value in second.items())
    return shared + (len(first) + 1 if name != other_name else 0)


def _child(field: Field, parents: list[Lesson], settings: Evolution) -> Point | None:
    generator = field.generator
    one = _chosen(field, parents, settings)
    name, tunables = one.trial.point
    lattice = field.lattices[name]
    vector = lattice.vector(tunables)
    mates = [each for each in parents if each.trial.point[0] == name and each is not one]
    if mates and generator.random() < settings.crossover:
        other = lattice.vector(generator.choice(mates).trial.point[1])
        vector = tuple(generator.choice(pair) for pair in zip(vector, other, strict=True))
    vector = _mutated(field, lattice, vector, settings.leap)
    found = lattice.nearest(vector, field.taken[name], generator)
    return None if found is None else field.take(name, found)


def _chosen(field: Field, parents: list[Lesson], settings: Evolution) -> Lesson:
    return min(field.generator.choices(parents, k=settings.tournament), key=_loss)


def _mutated(field: Field, lattice: Lattice, vector: Vector, leap: float) -> Vector:
    """On average one tunable changes: a step, or a leap: what is next to a good value need not be good."""
    mutated = list(vector)
    for place, axis in enumerate(lattice.axes):
        if field.generator.random() < 1 / len(lattice.axes):
            leaps = field.generator.random() < leap
            others = [step for step in range(len(axis.values)) if step != vector[place]]
            mutated[place] = field.generator.choice(others if leaps else axis.beside(vector[place]))
    return tuple(mutated)


def _loss(lesson: Lesson) -> float:
    assert lesson.loss is not None
    return lesson.loss


STRATEGY = Strategy(
    description="The best variants have offspring by crossover and mutation.",
    propose=propose,
    may_be_wrapped=True,
)
