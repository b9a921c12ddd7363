"""Optuna's samplers over the lattice of valid points of each implementation.

- `tpe`: tree-structured Parzen estimator (Bergstra et al., NIPS 2011); pending points of the round count as
  bad ones, so that its points differ.
- `gp`: a Gaussian process with expected improvement, for few and slow measurements.
- `cmaes`: CMA-ES (Hansen, arXiv:1604.00772) with margin for integers (Hamano et al., GECCO 2022).
- `nsgaii`, `nsgaiii`: non-dominated sorting (Deb et al., 2002) over several objectives.
- `qmc`: a quasi-Monte Carlo sequence, which covers the space evenly.
- `random`: independent draws.

A study exists in memory for one call and is rebuilt from the history in each round: a model-based sampler
gets all trials; one that works in generations (CMA-ES, NSGA-II) is asked again for everything that it
proposed, which is the same with the same seed, and gets the results. Each implementation has its own study. A
proposed point that is invalid or was proposed before is replaced by the nearest point that is left.
"""

import contextlib
import functools
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pipeline.records.configuration.search_settings import ObjectiveName
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, at_least, digest
from pipeline.records.search.search_trial import Trial
from pipeline.search.sampling import samplers
from pipeline.search.sampling.parameter_space import Choice, Parameter, ParameterSpace, Scalar, Steps
from pipeline.search.sampling.samplers import Direction, Sampler, Setting
from pipeline.search.spaces.lattice import RoundSpace, Vector, shares
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import latest_losses, penalty, single_objective

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import Trial as Asked

SamplerName = Literal["tpe", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc", "random"]
DEFAULTS: dict[str, dict[str, Setting]] = {
    "tpe": {"n_startup_trials": 8, "n_ei_candidates": 24, "multivariate": True, "constant_liar": True},
    "gp": {"n_startup_trials": 8},
    "cmaes": {"with_margin": True},
}
"""Settings that differ from Optuna's defaults."""
POPULATION = {"cmaes": "popsize", "nsgaii": "population_size", "nsgaiii": "population_size"}
"""Samplers that work in generations -> the setting for the size of one; by default a round."""
SMALLEST = {"cmaes": 5, "nsgaii": 2, "nsgaiii": 2}
"""Minimum size of a generation; the package cmaes requires five."""


KEPT = 8
"""Maximum number of studies that are kept for the next round of a search in the same process."""


Values = tuple[float, ...]


Judge = Callable[[Sequence[Trial]], list[Values | None]]
"""Trials -> the value of each objective, of failures as well; None for a trial without any value."""


class SamplerPlan(Record, frozen=True, kw_only=True):
    """Which sampler, and how it gets the history."""

    sampler: Sampler
    objectives: int = 1
    generations: bool = False
    """Whether it works in generations, so that its own proposals must be repeated."""
    all_ordered: bool = False
    """Whether it supports ordered parameters only."""


class Optuna(Record, frozen=True, kw_only=True):
    """Settings of the strategy `optuna`."""

    sampler: SamplerName = "tpe"
    objectives: tuple[ObjectiveName, ...] | None = None
    """All are minimized; one without any measurement is left out, and reported. null: seconds, joules and
    error with nsgaii and nsgaiii, seconds with every other sampler."""
    trials_at_most: int = 60
    """Sampler gp: maximum number of measured points in the model, half of them the best ones, half the
    latest; its cost is cubic."""
    settings: dict[str, Setting] = {}
    """Arguments of Optuna's sampler class, such as `n_startup_trials`."""

    def __post_init__(self) -> None:
        """Raise ValueError for objectives that the sampler does not support."""
        at_least(self, trials_at_most=2)
        wanted = self.objectives
        if wanted is None:
            return
        if not wanted or len(set(wanted)) < len(wanted):
            raise ValueError(f"objectives: expected one or more, each once, got {list(wanted)}")
        if len(wanted) > 1 and not self.sampler.startswith("nsga"):
            raise ValueError(f"objectives: {self.sampler} takes one, got {list(wanted)}; use sampler: nsgaii")

    def wanted(self) -> tuple[ObjectiveName, ...]:
        """The objectives, by default those of the sampler."""
        several: tuple[ObjectiveName, ...] = ("seconds", "joules", "error")
        return self.objectives or (several if self.sampler.startswith("nsga") else several[:1])


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then what the sampler proposes."""
    given = budget.settings(Optuna, "optuna")
    chosen = present(history, given.wanted()) or given.wanted()[:1]
    plan = SamplerPlan(
        sampler=Sampler(name=given.sampler, settings=_settings(given, budget)),
        objectives=len(chosen),
        generations=given.sampler in (*POPULATION, "qmc"),
        all_ordered=given.sampler == "cmaes",
    )
    round_space = RoundSpace(space, history, budget)
    judge = _judge(given, chosen, history)

    def ask_for(count: int) -> list[Point]:
        with _single_thread() if given.sampler == "gp" else contextlib.nullcontext():
            return ask(round_space, history, count, plan, judge)

    return round_space.defaults_first(ask_for)


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:
    """The objectives that are left out because nothing was measured of them."""
    given = budget.settings(Optuna, "optuna")
    measured = present(history, given.wanted())
    absent = [name for name in given.wanted() if name not in measured]
    if not history or not absent:
        return ()
    by = ", ".join(measured) or "nothing"
    return (f"{given.sampler}: nothing was measured of {', '.join(absent)}; it searches by {by}",)


def present(history: Sequence[Trial], objectives: Sequence[ObjectiveName]) -> tuple[ObjectiveName, ...]:
    """Objectives that were measured in variants that passed."""
    return tuple(name for name in objectives if any(_value(trial, name) is not None for trial in history))


def _settings(given: Optuna, budget: Budget) -> dict[str, Setting]:
    settings = DEFAULTS.get(given.sampler, {}) | given.settings
    size = POPULATION.get(given.sampler)
    if size is not None and size not in settings:
        smallest = SMALLEST[given.sampler]
        settings = settings | {size: max(smallest, budget.variants_per_round or smallest)}
    return settings


def _judge(given: Optuna, chosen: Sequence[ObjectiveName], history: Sequence[Trial]) -> Judge:
    """How the study rates trials."""
    if given.sampler.startswith("nsga"):
        return lambda trials: _several_objectives(trials, history, chosen)
    if given.sampler != "gp":
        return single_objective
    kept = _kept_trials(history, given.trials_at_most)

    def judge(trials: Sequence[Trial]) -> list[Values | None]:
        values = single_objective(trials)
        return [
            value if each.variant.id in kept else None for each, value in zip(trials, values, strict=True)
        ]

    return judge


def _kept_trials(history: Sequence[Trial], limit: int) -> set[str]:
    """Ids of the variants that the model sees: the best half of the limit, then the latest."""
    known = latest_losses(history)
    if len(known) <= limit:
        return {each.trial.variant.id for each in known}
    ranked = sorted(known, key=lambda each: math.inf if each.loss is None else each.loss)
    kept = {each.trial.variant.id for each in ranked[: limit // 2]}
    for each in reversed(known):
        if len(kept) == limit:
            break
        kept.add(each.trial.variant.id)
    return kept


def _several_objectives(
    trials: Sequence[Trial], history: Sequence[Trial], objectives: Sequence[ObjectiveName]
) -> list[Values | None]:
    """Objectives of each trial; a failure is worse than everything measured in each of them."""
    worst = [penalty([_value(trial, name) for trial in history]) for name in objectives]
    if None in worst:
        return [None] * len(trials)
    rows: list[Values | None] = []
    for trial in trials:
        found = [_value(trial, name) for name in objectives]
        rows.append(tuple(w if v is None else v for v, w in zip(found, worst, strict=True) if w is not None))
    return rows


def _value(trial: Trial, name: ObjectiveName) -> float | None:
    """The logarithm of seconds and joules, and the error; None for a variant without a measurement."""
    if trial.seconds is None:
        return None
    if name == "seconds":
        return math.log(trial.seconds.value)
    if name == "joules":
        return None if trial.joules is None or trial.joules <= 0 else math.log(trial.joules)
    return trial.error


@contextlib.contextmanager
def _single_thread() -> Iterator[None]:
    """Small matrices are slower on many threads, much slower if the cores are busy."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


STRATEGY = Strategy(
    description="Optuna's samplers: TPE, Gaussian process, CMA-ES, NSGA-II and -III, quasi-Monte Carlo.",
    propose=propose,
    settings=Optuna,
    may_be_wrapped=True,
    remarks=remarks,
    libraries=("cmaes", "numpy", "optuna", "scipy", "torch"),
)


def ask(
    round_space: RoundSpace, history: Sequence[Trial], count: int, plan: SamplerPlan, judge: Judge
) -> list[Point]:
    """New points, divided among the implementations."""
    samplers.require_optuna()
    points: list[Point] = []
    for name, share in shares(round_space, history, count).items():
        known = [trial for trial in history if trial.point[0] == name]
        # CMA-ES needs two axes, the others one.
        if len(round_space.lattices[name].axes) >= (2 if plan.all_ordered else 1):
            with _quiet():
                wanted = _generations if plan.generations else _model
                for vector in wanted(round_space, name, plan, judge, known).ask(share, round_space):
                    points.append(round_space.take(name, vector))
    # If one implementation has no points left, others fill up.
    return points + round_space.draw(count - len(points)) if len(points) < count else points


def _model(
    round_space: RoundSpace, name: str, plan: SamplerPlan, judge: Judge, known: Sequence[Trial]
) -> "_LatticeStudy":
    """A study with all known trials."""
    searched = _LatticeStudy(round_space, name, plan, told=len(known))
    for trial, value in zip(known, judge(known), strict=True):
        searched.add(searched.vector(trial), value)
    return searched


def _generations(
    round_space: RoundSpace, name: str, plan: SamplerPlan, judge: Judge, known: Sequence[Trial]
) -> "_LatticeStudy":
    """A study that repeats all rounds: it proposes the same points, and gets their results.

    Repeating all rounds in each round has quadratic cost, so a process that has just repeated all but the
    last continues from there, with the same outcome.
    """
    numbers = sorted({trial.round for trial in known})
    identity = [round_space.budget.seed, name, plan, round_space.lattices[name].subspace]
    searched = _LatticeStudy(round_space, name, plan, told=0)
    begin = 0
    if numbers:
        earlier = [trial for trial in known if trial.round < numbers[-1]]
        kept = _kept().pop(_key(identity, earlier), None)
        if kept is not None and kept.awaits([trial for trial in known if trial.round == numbers[-1]]):
            searched, begin = kept, len(numbers) - 1
    for number in numbers[begin:]:
        # The penalty of a failure depends on what was measured until then.
        until = [trial for trial in known if trial.round <= number]
        searched.catch_up(until, judge(until), number)
    while len(_kept()) >= KEPT:
        _kept().pop(next(iter(_kept())))
    _kept()[_key(identity, known)] = searched
    return searched


@functools.cache
def _kept() -> "dict[str, _LatticeStudy]":
    """Studies of the latest rounds; they only save time."""
    return {}


def _key(identity: list[object], known: Sequence[Trial]) -> str:
    return digest([*identity, [[trial.variant.id, trial.round, trial.seconds] for trial in known]])


class _LatticeStudy:
    """One implementation's study."""

    def __init__(self, round_space: RoundSpace, name: str, plan: SamplerPlan, *, told: int) -> None:
        self._name = name
        self._seed = round_space.budget.seed
        self._lattice = round_space.lattices[name]
        self._plan = plan
        self._space = ParameterSpace(
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
        """The lattice vector of a trial."""
        return self._lattice.vector(trial.point[1])

    def ask(self, count: int, round_space: RoundSpace) -> list[Vector]:
        """New points of this round."""
        self._taken |= round_space.taken[self._name]
        self._pending = self._ask(self._study, count, round_space.budget.round)
        return [vector for vector, _ in self._pending]

    def awaits(self, trials: Sequence[Trial]) -> bool:
        """Whether these are the points that it proposed last, with or without the default."""
        default = self._lattice.vector(self._lattice.subspace.default)
        vectors = {self.vector(trial) for trial in trials}
        return {vector for vector, _ in self._pending} == vectors - {default} and bool(self._pending)

    def catch_up(self, until: Sequence[Trial], values: list[Values | None], number: int) -> None:
        """Propose the points of a round, unless they are pending, then tell their results."""
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
        """Add the result of a point that the study did not propose."""
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
        """New points with their trials; a point may replace the one that the trial proposed."""
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
                # The model must know the point that is measured, not the one that it replaces.
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
    """Suppress Optuna's warnings about experimental features; errors name the sampler."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise ConfigError(f"a sampler of Optuna cannot be used: {error}") from None
