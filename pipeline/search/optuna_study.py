"""A round of one of Optuna's samplers. In: a field, its history, a sampler. Out: new and valid points.

A study lives in memory for one call. It is made again from the history each round: a model-based sampler is
told all trials; one that goes by generations (CMA-ES, NSGA-II) is asked again for all that it proposed, which
its seed makes the same, and told what came of it. Each implementation has a study of its own. What a sampler
asks for and the rules exclude, or what was proposed before, gives way to the nearest point that is left.
"""

import contextlib
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError
from pipeline.records.history import Trial
from pipeline.records.record import Record, digest
from pipeline.sampling import samplers
from pipeline.sampling.samplers import Direction, Sampler
from pipeline.sampling.space import Choice, Parameter, Scalar, Space, Steps
from pipeline.search.allocation import shares
from pipeline.search.lattice import Field, Vector
from pipeline.search.space import Point

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial as Asked

Values = tuple[float, ...]
Judge = Callable[[Sequence[Trial]], list[Values | None]]
"""Trials -> the value of each objective, failures too; None where it has no value at all."""


class Plan(Record, frozen=True, kw_only=True):
    """Which sampler, and how it is kept informed."""

    sampler: Sampler
    objectives: int = 1
    generations: bool = False
    """Whether it goes by generations, so that its own proposals have to be asked for again."""
    all_ordered: bool = False
    """Whether it knows steps only."""


def ask(field: Field, history: Sequence[Trial], count: int, plan: Plan, judge: Judge) -> list[Point]:
    """So many points, shared among the implementations."""
    samplers.require_optuna()
    points: list[Point] = []
    for name, share in shares(field, history, count).items():
        known = [trial for trial in history if trial.point[0] == name]
        searched = _Searched(field, name, plan)
        if searched.can_search:
            for vector in searched.ask(known, judge(known), share):
                points.append(field.take(name, vector))
    # One implementation may have no more points: then any others.
    return points + field.draw(count - len(points)) if len(points) < count else points


class _Searched:
    """One implementation's study."""

    def __init__(self, field: Field, name: str, plan: Plan) -> None:
        self._field = field
        self._name = name
        self._lattice = lattice = field.lattices[name]
        self._plan = plan
        self._space = Space(
            parameters=tuple(
                _parameter(axis.name, len(axis.values), plan.all_ordered or axis.ordered)
                for axis in lattice.axes
            )
        )
        self._taken: set[Vector] = set()

    @property
    def can_search(self) -> bool:
        """Whether there is anything to model: CMA-ES needs two axes, all need one."""
        return len(self._lattice.axes) >= (2 if self._plan.all_ordered else 1)

    def ask(self, known: Sequence[Trial], values: list[Values | None], count: int) -> list[Vector]:
        """New points after all that is known."""
        with _quiet():
            study = self._study(len(known))
            if self._plan.generations:
                self._replay(study, known, values)
            else:
                for trial, value in zip(known, values, strict=True):
                    self._add(study, self._lattice.vector(trial.point[1]), value)
            self._taken |= self._field.taken[self._name]
            return [vector for vector, _ in self._ask(study, count, self._field.budget.round)]

    def _study(self, told: int) -> "Study":
        import optuna

        directions: tuple[Direction, ...] = tuple("minimize" for _ in range(self._plan.objectives))
        seed = int(digest([self._field.budget.seed, self._name])[:8], 16)
        sampler = Sampler(name=self._plan.sampler.name, seed=seed, settings=self._plan.sampler.settings)
        # A replay begins its random numbers where the search began; a model goes on from where it is.
        built = samplers.build(sampler, self._space, directions, 0 if self._plan.generations else told)
        return optuna.create_study(directions=list(directions), sampler=built)

    def _replay(self, study: "Study", known: Sequence[Trial], values: list[Values | None]) -> None:
        """Round by round: ask for what was proposed, then tell what came of it."""
        value_of = {
            self._lattice.vector(trial.point[1]): value for trial, value in zip(known, values, strict=True)
        }
        for number in sorted({trial.round for trial in known}):
            vectors = [self._lattice.vector(trial.point[1]) for trial in known if trial.round == number]
            default = self._lattice.vector(self._lattice.subspace.default)
            self._taken |= {default} & set(vectors)
            asked = self._ask(study, len(vectors) - (default in vectors), number)
            for vector, trial in asked:
                self._tell(study, trial, value_of.get(vector))
            for vector in set(vectors) - {vector for vector, _ in asked}:
                self._add(study, vector, value_of[vector])

    def _ask(self, study: "Study", count: int, round_number: int) -> "list[tuple[Vector, Asked]]":
        """Points that are new with the trials that asked for them, or for what they stand in for."""
        generator = random.Random(f"{self._field.budget.seed} {round_number} {self._name}")
        found: list[tuple[Vector, Asked]] = []
        for _ in range(count):
            trial = study.ask(self._space.distributions())
            wanted = tuple(int(trial.params[axis.name]) for axis in self._lattice.axes)
            vector = self._lattice.nearest(wanted, self._taken, generator)
            if vector is None:
                self._tell(study, trial, None)
                break
            self._taken.add(vector)
            found.append((vector, trial))
            if vector != wanted and not self._plan.generations:
                # The model has to know what is under way, not what gave way to it.
                self._tell(study, trial, None)
                self._add_running(study, vector)
        return found

    def _tell(self, study: "Study", trial: "Asked", value: Values | None) -> None:
        import optuna

        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, list(value))

    def _add(self, study: "Study", vector: Vector, value: Values | None) -> None:
        import optuna

        self._taken.add(vector)
        if value is not None:
            study.add_trial(
                optuna.trial.create_trial(
                    params=self._params(vector), distributions=self._space.distributions(), values=list(value)
                )
            )

    def _add_running(self, study: "Study", vector: Vector) -> None:
        import optuna

        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params=self._params(vector),
                distributions=self._space.distributions(),
            )
        )

    def _params(self, vector: Vector) -> dict[str, Scalar]:
        return {axis.name: step for axis, step in zip(self._lattice.axes, vector, strict=True)}


def _parameter(name: str, count: int, ordered: bool) -> Parameter:
    if ordered:
        return Steps(name=name, first=0, count=count)
    steps = tuple(range(count))
    return Choice(name=name, values=steps, texts=tuple(str(step) for step in steps))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's remarks on what is experimental; its errors name the sampler."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise ConfigError(f"a sampler of Optuna cannot be used: {error}") from None
