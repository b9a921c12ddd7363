"""A round of one of Optuna's samplers. In: a field, its history, a sampler. Out: new and valid points.

A study lives in memory for one call. It is made again from the history each round: a model-based sampler is
told all trials; one that goes by generations (CMA-ES, NSGA-II) is asked again for all that it proposed, which
its seed makes the same, and told what came of it. Each implementation has a study of its own. What a sampler
asks for and the rules exclude, or what was proposed before, gives way to the nearest point that is left.
"""

import contextlib
import functools
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, digest
from pipeline.records.search.search_trial import Trial
from pipeline.search.implementation_shares import shares
from pipeline.search.sampling import samplers
from pipeline.search.sampling.parameter_space import Choice, Parameter, Scalar, Space, Steps
from pipeline.search.sampling.samplers import Direction, Sampler
from pipeline.search.spaces.lattice import Field, Vector
from pipeline.search.spaces.search_space import Point

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial as Asked

KEPT = 8
"""Studies of implementations that wait for the next round of a search in the same process."""

Values = tuple[float, ...]
Judge = Callable[[Sequence[Trial]], list[Values | None]]
"""Trials -> the value of each objective, failures too; None where it has no value at all."""


class SamplerPlan(Record, frozen=True, kw_only=True):
    """Which sampler, and how it is kept informed."""

    sampler: Sampler
    objectives: int = 1
    generations: bool = False
    """Whether it goes by generations, so that its own proposals have to be asked for again."""
    all_ordered: bool = False
    """Whether it knows steps only."""


def ask(field: Field, history: Sequence[Trial], count: int, plan: SamplerPlan, judge: Judge) -> list[Point]:
    """So many points, shared among the implementations."""
    samplers.require_optuna()
    points: list[Point] = []
    for name, share in shares(field, history, count).items():
        known = [trial for trial in history if trial.point[0] == name]
        # CMA-ES needs two axes, all need one.
        if len(field.lattices[name].axes) >= (2 if plan.all_ordered else 1):
            with _quiet():
                wanted = _generations if plan.generations else _model
                for vector in wanted(field, name, plan, judge, known).ask(share, field):
                    points.append(field.take(name, vector))
    # One implementation may have no more points: then any others.
    return points + field.draw(count - len(points)) if len(points) < count else points


def _model(field: Field, name: str, plan: SamplerPlan, judge: Judge, known: Sequence[Trial]) -> "_Searched":
    """A study that was told all that is known."""
    searched = _Searched(field, name, plan, told=len(known))
    for trial, value in zip(known, judge(known), strict=True):
        searched.add(searched.vector(trial), value)
    return searched


def _generations(
    field: Field, name: str, plan: SamplerPlan, judge: Judge, known: Sequence[Trial]
) -> "_Searched":
    """A study that went through all rounds: asked for what was proposed, then told what came of it.

    Going through all of them again takes time that grows with the square of the rounds, so a process that has
    just gone through all but the last continues from there: the outcome is the same.
    """
    numbers = sorted({trial.round for trial in known})
    identity = [field.budget.seed, name, plan, field.lattices[name].subspace]
    searched = _Searched(field, name, plan, told=0)
    begin = 0
    if numbers:
        earlier = [trial for trial in known if trial.round < numbers[-1]]
        kept = _kept().pop(_key(identity, earlier), None)
        if kept is not None and kept.awaits([trial for trial in known if trial.round == numbers[-1]]):
            searched, begin = kept, len(numbers) - 1
    for number in numbers[begin:]:
        # As it was then: what a failure counts as depends on what was measured until then.
        until = [trial for trial in known if trial.round <= number]
        searched.catch_up(until, judge(until), number)
    while len(_kept()) >= KEPT:
        _kept().pop(next(iter(_kept())))
    _kept()[_key(identity, known)] = searched
    return searched


@functools.cache
def _kept() -> "dict[str, _Searched]":
    """The studies that were asked last; without them the same comes out, later."""
    return {}


def _key(identity: list[object], known: Sequence[Trial]) -> str:
    return digest([*identity, [[trial.variant.id, trial.round, trial.seconds] for trial in known]])


class _Searched:
    """One implementation's study."""

    def __init__(self, field: Field, name: str, plan: SamplerPlan, *, told: int) -> None:
        self._name = name
        self._seed = field.budget.seed
        self._lattice = field.lattices[name]
        self._plan = plan
        self._space = Space(
            parameters=tuple(
                _parameter(axis.name, len(axis.values), plan.all_ordered or axis.ordered)
                for axis in self._lattice.axes
            )
        )
        self._distributions = self._space.distributions()
        self._taken: set[Vector] = set()
        self._pending: list[tuple[Vector, Asked]] = []
        self._study = self._create(told)

    def vector(self, trial: Trial) -> Vector:
        """Where a trial stands."""
        return self._lattice.vector(trial.point[1])

    def ask(self, count: int, field: Field) -> list[Vector]:
        """New points of this round."""
        self._taken |= field.taken[self._name]
        self._pending = self._ask(self._study, count, field.budget.round)
        return [vector for vector, _ in self._pending]

    def awaits(self, trials: Sequence[Trial]) -> bool:
        """Whether these are what it was asked for last, with or without the default."""
        default = self._lattice.vector(self._lattice.subspace.default)
        vectors = {self.vector(trial) for trial in trials}
        return {vector for vector, _ in self._pending} == vectors - {default} and bool(self._pending)

    def catch_up(self, until: Sequence[Trial], values: list[Values | None], number: int) -> None:
        """Ask for the points of a round, unless they are awaited, then tell what came of them."""
        value_of = {self.vector(trial): value for trial, value in zip(until, values, strict=True)}
        vectors = [self.vector(trial) for trial in until if trial.round == number]
        default = self._lattice.vector(self._lattice.subspace.default)
        self._taken |= {default} & set(vectors)
        if not self._pending:
            self._pending = self._ask(self._study, len(vectors) - (default in vectors), number)
        asked = {vector for vector, _ in self._pending}
        for vector, trial in self._pending:
            self._tell(self._study, trial, value_of.get(vector))
        for vector in vectors:
            if vector not in asked:
                self.add(vector, value_of[vector])
        self._pending = []

    def add(self, vector: Vector, value: Values | None) -> None:
        """Tell what came of a point that the study was not asked for."""
        import optuna

        self._taken.add(vector)
        if value is not None:
            self._study.add_trial(
                optuna.trial.create_trial(
                    params=self._params(vector), distributions=self._distributions, values=list(value)
                )
            )

    def _create(self, told: int) -> "Study":
        import optuna

        directions: tuple[Direction, ...] = tuple("minimize" for _ in range(self._plan.objectives))
        seed = int(digest([self._seed, self._name])[:8], 16)
        sampler = Sampler(name=self._plan.sampler.name, seed=seed, settings=self._plan.sampler.settings)
        built = samplers.build(sampler, self._space, directions, told)
        return optuna.create_study(directions=list(directions), sampler=built)

    def _ask(self, study: "Study", count: int, round_number: int) -> "list[tuple[Vector, Asked]]":
        """Points that are new with the trials that asked for them, or for what they stand in for."""
        generator = random.Random(f"{self._seed} {round_number} {self._name}")
        found: list[tuple[Vector, Asked]] = []
        for _ in range(count):
            trial = study.ask(self._distributions)
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

    def _add_running(self, study: "Study", vector: Vector) -> None:
        import optuna

        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.RUNNING,
                params=self._params(vector),
                distributions=self._distributions,
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
