"""Open a study or resume one. In: what is searched, and where it is kept. Out: the exploration of it.

A study remembers what it was made for; a search of something else under the same name is an error, and not a
study whose values cannot be compared.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, digest
from pipeline.search.sampling import samplers
from pipeline.search.sampling.parameter_space import Space
from pipeline.search.sampling.samplers import Direction, Sampler
from pipeline.search.sampling.study import INTERRUPTED, REASON, REPEATS, Exploration, states, tell
from pipeline.search.sampling.study_storage import held, open_storage, shown, understandable

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study

MADE_FOR = "made_for"
"""Attribute of a study: its purpose."""


class Purpose(Record, frozen=True, kw_only=True):
    """What is searched: two studies with an equal purpose have comparable values."""

    space: Space
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

    Trials that a killed process left running are marked as failed; their points are asked for first.

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
    """The study of that name; one of another purpose is an error, or begun anew if nothing came of it."""
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


def _end_interrupted(study: "Study", space: Space) -> None:
    """Mark trials that were left running; first their points are queued, so that a kill here loses none."""
    for trial in study.get_trials(deepcopy=False, states=states("RUNNING")):
        whole = trial.params.keys() == space.described().keys()
        if whole and REPEATS not in trial.user_attrs:
            study.enqueue_trial(trial.params)
        # optuna.Trial(study, id) would have the sampler propose values for it.
        for name, value in ((INTERRUPTED, True), (REASON, "left running by a process that ended")):
            study._storage.set_trial_user_attr(trial._trial_id, name, value)
        tell(study, trial.number, "FAIL")
