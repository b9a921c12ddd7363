"""Open or resume an Optuna study, and ask it for points that are new.

A point that was evaluated is not proposed again: its trial gets the known value at once, and the sampler is
asked for another one; after some tries an unseen point is drawn at random. A point that failed is not
proposed again by this process; a later one may try it again, because the cause may be fixed. A study records
what it was made for; a search of something else under the same name is an error, because its values cannot be
compared.
"""

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, digest
from pipeline.search.sampling import samplers
from pipeline.search.sampling.parameter_space import ParameterSpace, Point, Scalar
from pipeline.search.sampling.samplers import Direction, Sampler
from pipeline.search.sampling.study_storage import held, open_storage, shown, understandable

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial, TrialState

TRIES = 5  # of the sampler for one point, before a random one is taken

REASON = "reason"
"""Attribute of a failed trial: why."""
REPEATS = "repeats"
"""Attribute of a trial whose point was evaluated before: the number of that trial."""
INTERRUPTED = "interrupted"
"""Attribute of a study: numbers of the trials that were left running; their points are proposed again."""
JOB = "job"
"""Attribute of a launched trial: the number of its job."""


class Asked(Record, frozen=True, kw_only=True):
    """A point that is to be evaluated."""

    trial: int
    point: Point


class MeasuredPoint(Record, frozen=True, kw_only=True, tag="measured"):
    """The objectives of a point, in the order of the directions; finite numbers."""

    values: tuple[float, ...]


class Failed(Record, frozen=True, kw_only=True, tag="failed"):
    """A point without objectives."""

    reason: str


Answer = MeasuredPoint | Failed


class Evaluated(Record, frozen=True, kw_only=True):
    """A trial with its objectives."""

    trial: int
    job: int | None
    """None: of a trial that was added by hand."""
    values: tuple[float, ...]
    params: dict[str, Scalar]
    point: Point


class Exploration:
    """Asks an Optuna study for new points, and tells it the results; one process at a time."""

    def __init__(
        self, study: "Study", space: ParameterSpace, directions: tuple[Direction, ...], storage: str | None
    ) -> None:
        self.directions = directions
        self.storage = storage
        self.name: str = study.study_name
        self.study = study
        """As Optuna's own tools see it."""
        self._interrupted = frozenset(study.user_attrs.get(INTERRUPTED, ()))
        self._space = space
        self._distributions = space.distributions()
        self._known: dict[Point, Evaluated] = {}
        self._failed: dict[Point, tuple[int, str]] = {}
        self._running: dict[Point, list[Trial]] = {}
        for trial in self._of_states("COMPLETE"):
            evaluated = self._evaluated(trial, trial.values)
            self._known.setdefault(evaluated.point, evaluated)

    def finished(self) -> int:
        """Number of trials that were launched and ended, including failures."""
        return sum(
            REPEATS not in trial.user_attrs and trial.number not in self._interrupted
            for trial in self._of_states("COMPLETE", "FAIL")
        )

    def failures(self) -> list[str]:
        """Why trials failed, in their order."""
        return [
            str(trial.user_attrs.get(REASON, "unknown"))
            for trial in self._of_states("FAIL")
            if REPEATS not in trial.user_attrs and trial.number not in self._interrupted
        ]

    def next_job(self) -> int:
        """A number that no job of this study had."""
        trials = self._of_states("COMPLETE", "FAIL")
        numbers = [trial.user_attrs[JOB] for trial in trials if JOB in trial.user_attrs]
        return 1 + max(numbers, default=-1)

    def exhausted(self) -> bool:
        """Whether each point of the space was evaluated, failed, or is running."""
        size = self._space.size
        return size is not None and len(self._seen()) >= size

    def ask(self, count: int, first_job: int) -> list[Asked]:
        """New points, or fewer if the space has no more; their jobs are numbered from `first_job`.

        Raises
        ------
        StoreError
            The storage cannot be read or written any more; so does `tell`.
        """
        asked: list[Asked] = []
        with understandable(self.storage):
            while len(asked) < count:
                trial = self._new()
                if trial is None:
                    break
                point = self._space.point(trial.params)
                trial.set_user_attr(JOB, first_job + len(asked))
                self._running[point] = [trial]
                asked.append(Asked(trial=trial.number, point=point))
        return asked

    def tell(self, asked: Asked, answer: Answer) -> None:
        """Set the result of a point, for all trials that wait for it."""
        trials = self._running.pop(asked.point)
        with understandable(self.storage):
            for trial in trials:
                self._finish(trial, answer)
        if isinstance(answer, Failed):
            self._failed[asked.point] = (asked.trial, answer.reason)
        else:
            self._known[asked.point] = self._evaluated(trials[0], answer.values)

    def best(self) -> list[Evaluated]:
        """The best trial; with several objectives, those on the Pareto front."""
        if not self._known:
            return []
        if len(self.directions) == 1:
            choose = min if self.directions[0] == "minimize" else max
            return [choose(self._known.values(), key=lambda evaluated: evaluated.values[0])]
        with understandable(self.storage):
            front = self.study.best_trials
        return [self._evaluated(trial, trial.values) for trial in front if REPEATS not in trial.user_attrs]

    def _new(self) -> "Trial | None":
        """A trial whose point is new; None if there is none."""
        tries = 0
        while not self.exhausted():
            if tries and tries % TRIES == 0:
                self._enqueue_unseen(tries)
            trial = self.study.ask(self._distributions)
            if self._is_new(trial):
                return trial
            tries += 1
        return None

    def _enqueue_unseen(self, tries: int) -> None:
        generator = random.Random(f"{self.study.study_name} {len(self._seen())} {tries}")
        values = self._space.unseen(self._seen(), generator)
        if values is not None:
            self.study.enqueue_trial(values)

    def _is_new(self, trial: "Trial") -> bool:
        """Whether the trial's point must be evaluated; otherwise the trial gets the known result."""
        point = self._space.point(trial.params)
        if point in self._known:
            known = self._known[point]
            trial.set_user_attr(REPEATS, known.trial)
            self._finish(trial, MeasuredPoint(values=known.values))
        elif point in self._failed:
            number, reason = self._failed[point]
            trial.set_user_attr(REPEATS, number)
            self._finish(trial, Failed(reason=reason))
        elif point in self._running:
            trial.set_user_attr(REPEATS, self._running[point][0].number)
            self._running[point].append(trial)
        else:
            return True
        return False

    def _finish(self, trial: "Trial", answer: Answer) -> None:
        """End a trial; if another process ended it meanwhile, the value becomes another trial."""
        import optuna

        try:
            if isinstance(answer, Failed):
                trial.set_user_attr(REASON, answer.reason)
                tell(self.study, trial.number, "FAIL")
                return
            told = tell(self.study, trial.number, "COMPLETE", answer.values)
        except optuna.exceptions.UpdateFinishedTrialError:
            return
        if told.state != optuna.trial.TrialState.COMPLETE:
            self.study.add_trial(
                optuna.trial.create_trial(
                    params=trial.params, distributions=self._distributions, values=answer.values
                )
            )

    def _seen(self) -> set[Point]:
        return {*self._known, *self._failed, *self._running}

    def _of_states(self, *names: str) -> "list[FrozenTrial]":
        with understandable(self.storage):
            trials: list[FrozenTrial] = self.study.get_trials(deepcopy=False, states=states(*names))
        return trials

    def _evaluated(self, trial: "Trial | FrozenTrial", values: Sequence[float]) -> Evaluated:
        return Evaluated(
            trial=trial.number,
            job=trial.user_attrs.get(JOB),
            values=tuple(values),
            params=dict(trial.params),
            point=self._space.point(trial.params),
        )


def tell(study: "Study", number: int, state: str, values: Sequence[float] | None = None) -> "FrozenTrial":
    """End a trial, unless another process ended it; returns it as it is then."""
    (wanted,) = states(state)
    try:
        return study.tell(number, values, wanted, skip_if_finished=True)
    except RuntimeError:
        # After its last point, a sampler that enumerates stops `study.optimize`, which is not running here.
        told = study.get_trials(deepcopy=False)[number]
        if not told.state.is_finished():
            raise
        return told


def states(*names: str) -> "tuple[TrialState, ...]":
    """Optuna's states by name."""
    from optuna.trial import TrialState

    return tuple(TrialState[name] for name in names)


MADE_FOR = "made_for"
"""Attribute of a study: its purpose."""


class Purpose(Record, frozen=True, kw_only=True):
    """What is searched: two studies with an equal purpose have comparable values."""

    space: ParameterSpace
    directions: tuple[Direction, ...]
    fixed: tuple[str, ...] = ()
    """What is the same in all trials, as text."""

    def described(self) -> dict[str, dict[str, str]]:
        """Each part of it as text, to find what differs."""
        return {
            "parameters": self.space.described(),
            "held": {
                "direction": ", ".join(self.directions),
                "fixed values": " ".join(sorted(self.fixed)) or "none",
            },
        }

    def study_name(self, sampler: Sampler) -> str:
        """A name that the same search by the same sampler has again."""
        return f"{sampler.name}-{digest([self.described(), sampler])}"


@contextlib.contextmanager
def exploration(
    purpose: Purpose, sampler: Sampler, *, storage: str | None, name: str | None
) -> Iterator[Exploration]:
    """The exploration, held against other processes until the context ends.

    Trials that a killed process left running are marked as failed; their points are proposed first.

    Raises
    ------
    ConfigError
        The sampler does not fit, or the study was made for something else.
    StoreError
        The storage cannot be used, or another process has the study.
    ToolchainError
        Optuna is not installed.
    """
    samplers.require_optuna()
    samplers.check(sampler, purpose.space, purpose.directions)
    study_name = name or purpose.study_name(sampler)
    with held(storage, study_name):
        opened = open_storage(storage)
        with understandable(storage):
            study = _open(opened, study_name, purpose, shown(storage))
            _end_interrupted(study, purpose.space)
            told = len(study.get_trials(deepcopy=False))
            study.sampler = samplers.build(sampler, purpose.space, purpose.directions, told)
            explored = Exploration(study, purpose.space, purpose.directions, storage)
        yield explored


def _open(storage: "BaseStorage", name: str, purpose: Purpose, place: str) -> "Study":
    """The study of that name; one of another purpose is an error, or restarted if it has no result."""
    import optuna

    def create() -> "Study":
        return optuna.create_study(
            storage=storage, study_name=name, directions=list(purpose.directions), load_if_exists=True
        )

    study = create()
    described = purpose.described()
    made_for = study.user_attrs.get(MADE_FOR)
    if made_for == described:
        return study
    trials = study.get_trials(deepcopy=False)
    kept = trials if made_for is None else [trial for trial in trials if trial.state in states("COMPLETE")]
    if kept:
        raise ConfigError(
            f"study '{name}' in {place}: {_difference(made_for, described)}; give another study_name"
        )
    optuna.delete_study(storage=storage, study_name=name)
    study = create()
    study.set_user_attr(MADE_FOR, described)
    return study


def _difference(made_for: dict[str, dict[str, str]] | None, described: dict[str, dict[str, str]]) -> str:
    """The first part in which two purposes differ."""
    if made_for is None:
        return "it was made by another program"
    for kind, now in described.items():
        was = made_for[kind]
        for part in (*now, *was):
            if was.get(part) != now.get(part):
                return (
                    f"it was made for {part}: {was.get(part, 'not searched')}, "
                    f"now it is {now.get(part, 'not searched')}"
                )
    return "it was made for the same in another order"


def _end_interrupted(study: "Study", space: ParameterSpace) -> None:
    """Mark trials that were left running; first their points are queued, so that a kill here loses none."""
    for trial in study.get_trials(deepcopy=False, states=states("RUNNING")):
        whole = trial.params.keys() == space.described().keys()
        if whole and REPEATS not in trial.user_attrs:
            study.enqueue_trial(trial.params)
        # Optuna sets attributes of trials that this process asked for only, so the study has it.
        earlier = study.user_attrs.get(INTERRUPTED, ())
        study.set_user_attr(INTERRUPTED, sorted({*earlier, trial.number}))
        tell(study, trial.number, "FAIL")
