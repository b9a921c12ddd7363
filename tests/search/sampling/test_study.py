"""Asking for new points only, telling answers, going on after an interruption."""

from pathlib import Path

import pytest

from pipeline.records.errors import ConfigError, StoreError
from pipeline.search.sampling.parameter_space import Choice, Interval, ParameterSpace, Steps
from pipeline.search.sampling.samplers import Sampler
from pipeline.search.sampling.study import INTERRUPTED, JOB, REASON, REPEATS, Failed, MeasuredPoint
from pipeline.search.sampling.study_storage import shown
from tests.search.sampling.toy import COUNTED, NUMBERS, opened, quadratic, run
from tests.selection import slow_unless

optuna = pytest.importorskip("optuna", reason="not installed: python -m pip install -e '.[optuna]'")


def loaded(file: Path, name: str = "toy") -> optuna.Study:
    """The study as Optuna's own tools see it."""
    return optuna.load_study(study_name=name, storage=f"sqlite:///{file}")


@pytest.mark.parametrize("sampler", ["random", "tpe", "grid", "brute_force", "qmc"])
def test_no_point_twice(sampler: str) -> None:
    """Six points, forty wanted in batches of four: each is evaluated once, then the space is exhausted."""
    with opened(COUNTED, Sampler(name=sampler)) as explored:
        points = run(explored, 40)
        every = [(f"shape={shape}", f"y={y}") for shape in ("round", "square") for y in range(3)]
        assert sorted(points) == sorted(every)
        assert explored.exhausted()
        assert explored.finished() == 6


def test_repeats_get_the_known_value() -> None:
    """A trial with a known point is told its value, says whose it is, and does not count."""
    with opened(COUNTED, Sampler(name="random")) as explored:
        points = run(explored, 6, batch=3)
        trials = explored.study.trials
    repeats = [trial for trial in trials if REPEATS in trial.user_attrs]
    assert repeats, "six random draws of six points without a repeat: take another seed"
    for trial in repeats:
        leader = trials[trial.user_attrs[REPEATS]]
        assert (trial.params, trial.values) == (leader.params, leader.values)
    assert len(trials) == len(points) + len(repeats)


def test_failed_points_are_not_tried_again() -> None:
    """A failure has its reason, the search goes on, and its point is not launched a second time."""
    asked_for = []
    with opened(COUNTED) as explored:
        while asked := explored.ask(2, explored.next_job()):
            for one in asked:
                asked_for.append(one.point)
                bad = "shape=square" in one.point
                answer = Failed(reason="broken") if bad else MeasuredPoint(values=(quadratic(one.point),))
                explored.tell(one, answer)
        assert len(asked_for) == len(set(asked_for)) == explored.finished() == 6
        assert explored.failures() == ["broken"] * 3
        failed = [trial for trial in explored.study.trials if trial.state.name == "FAIL"]
        assert {trial.user_attrs[REASON] for trial in failed} == {"broken"}
        assert explored.best()[0].point == ("shape=round", "y=2")


def test_maximize() -> None:
    """The best of a study that maximizes is its largest value."""
    with opened(COUNTED, directions=("maximize",)) as explored:
        run(explored, 6)
        assert explored.best()[0].point == ("shape=square", "y=0")


@pytest.mark.slow
def test_goes_on_where_it_was(tmp_path: Path) -> None:
    """Finished trials are kept, running ones fail and are asked for first, jobs are numbered on."""
    file = tmp_path / "optuna.db"
    with opened(NUMBERS, file=file) as explored:
        done = run(explored, 4)
        running = [one.point for one in explored.ask(2, explored.next_job())]
    with opened(NUMBERS, file=file) as explored:
        assert explored.finished() == 4
        assert explored.next_job() == 6
        again = run(explored, 2)
        assert again == running
        assert run(explored, 4)[0] not in done
        assert explored.finished() == 10
    study = loaded(file)
    trials = study.trials
    assert [trial.state.name for trial in trials].count("RUNNING") == 0
    assert [trials[number].state.name for number in study.user_attrs[INTERRUPTED]] == ["FAIL"] * 2
    jobs = [trial.user_attrs[JOB] for trial in trials if JOB in trial.user_attrs]
    assert sorted(jobs) == list(range(12))


# Not gp: once it is at the optimum, it asks for nothing else, resumed or not.
@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    slow_unless("tpe".__eq__, ["random", "tpe", "grid", "qmc", "cmaes", "nsgaii", "brute_force"]),
)
def test_resumed_sampler_asks_for_other_points(tmp_path: Path, sampler: str) -> None:
    """With a seed, a resumed search does not begin its sequence again: hardly a trial is a repeat."""
    axes = (Steps(name="x", first=0, count=60), Steps(name="y", first=0, count=60))
    space = ParameterSpace(parameters=axes)
    for _ in range(3):
        with opened(space, Sampler(name=sampler, seed=1), file=tmp_path / "optuna.db") as explored:
            run(explored, 8)
            assert len([t for t in explored.study.trials if REPEATS in t.user_attrs]) <= 3
    assert explored.finished() == 24


def test_failed_points_may_be_tried_by_a_later_process(tmp_path: Path) -> None:
    """The cause of a failure may have been mended meanwhile."""
    single = ParameterSpace(parameters=(Choice(name="a", values=("b",), texts=("b",)),))
    for answer in (Failed(reason="device unavailable"), MeasuredPoint(values=(1.0,))):
        with opened(single, file=tmp_path / "optuna.db") as explored:
            (asked,) = explored.ask(1, explored.next_job())
            explored.tell(asked, answer)
            assert explored.ask(1, explored.next_job()) == []
    assert explored.best()[0].values == (1.0,)


def test_two_processes_do_not_share_a_study(tmp_path: Path) -> None:
    """The second one is told; after the first one's end it may go on."""
    file = tmp_path / "optuna.db"
    with opened(NUMBERS, file=file):
        with (
            pytest.raises(StoreError, match="study 'toy' in .*optuna.db: another sweep is at it"),
            opened(NUMBERS, file=file),
        ):
            pass
        with opened(NUMBERS, file=file, name="other"):
            pass
    with opened(NUMBERS, file=file):
        pass


def test_value_of_a_trial_that_was_taken_over_is_kept(tmp_path: Path) -> None:
    """Another machine ended the trial as interrupted: the measured value becomes a trial of its own."""
    file = tmp_path / "optuna.db"
    with opened(NUMBERS, file=file) as explored:
        (asked,) = explored.ask(1, 0)
        loaded(file).tell(asked.trial, state=optuna.trial.TrialState.FAIL)
        explored.tell(asked, MeasuredPoint(values=(7.0,)))
    assert [trial.value for trial in loaded(file).trials] == [None, 7.0]


def test_another_space_under_the_same_name(tmp_path: Path) -> None:
    """One line says what was searched and what is now; the default name differs by itself."""
    file = tmp_path / "optuna.db"
    with opened(NUMBERS, file=file) as explored:
        run(explored, 2)
    narrower = ParameterSpace(parameters=(NUMBERS.parameters[1],))
    wider = ParameterSpace(parameters=(Interval(name="x", low=-5.0, high=4.0), NUMBERS.parameters[1]))
    message = (
        r"study 'toy' in .*optuna.db: it was made for x: interval\(-4.0,4.0\), "
        r"now it is interval\(-5.0,4.0\); give another study_name"
    )
    with pytest.raises(ConfigError, match=message), opened(wider, file=file):
        pass
    message = "made for direction: minimize, now it is maximize"
    with pytest.raises(ConfigError, match=message), opened(NUMBERS, file=file, directions=("maximize",)):
        pass
    with (
        pytest.raises(ConfigError, match="made for x: .* now it is not searched"),
        opened(narrower, file=file),
    ):
        pass
    with opened(NUMBERS, file=file, name=None) as first, opened(wider, file=file, name=None) as second:
        assert first.name != second.name


def test_study_without_a_value_is_begun_anew(tmp_path: Path) -> None:
    """A first run that was wrong altogether does not take the name."""
    file = tmp_path / "optuna.db"
    with opened(COUNTED, file=file) as explored:
        (asked,) = explored.ask(1, 0)
        explored.tell(asked, Failed(reason="no such key"))
    with opened(NUMBERS, file=file) as explored:
        assert explored.finished() == 0


def test_study_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """Its trials say nothing about what was the same in all of them."""
    file = tmp_path / "optuna.db"
    study = optuna.create_study(study_name="toy", storage=f"sqlite:///{file}")
    study.ask()
    with pytest.raises(ConfigError, match="it was made by another program"), opened(NUMBERS, file=file):
        pass
    assert len(loaded(file).trials) == 1


def test_storage_that_cannot_be_used(tmp_path: Path) -> None:
    """A file that is no database, a folder without permission: one line that names it."""
    file = tmp_path / "optuna.db"
    file.write_text("this is no database, and long enough to be read as one: " * 20)
    with (
        pytest.raises(StoreError, match="Optuna's storage .*optuna.db: .*not a database") as error,
        opened(NUMBERS, file=file),
    ):
        pass
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        (None, "memory"),
        ("sqlite:///artifacts/optuna.db", "artifacts/optuna.db"),
        ("postgresql://me:secret@db.example:5432/sweeps", "postgresql://me@db.example:5432/sweeps"),
        ("postgresql://db.example/sweeps", "postgresql://db.example/sweeps"),
    ],
)
def test_storage_is_shown_without_a_password(url: str | None, text: str) -> None:
    """Messages and logs are copied."""
    assert shown(url) == text
