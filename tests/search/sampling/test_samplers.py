"""Optuna's samplers by name: each one runs, what does not fit is said."""

import builtins
import re
import sys

import pytest

from pipeline.records.errors import ConfigError, ToolchainError, installation
from pipeline.search.sampling import samplers
from pipeline.search.sampling.parameter_space import Choice, Interval, ParameterSpace, Steps
from pipeline.search.sampling.samplers import CLASSES, Sampler, build, drawn_at_random
from pipeline.search.sampling.samplers import COUNTED as COUNTING
from tests.search.sampling.toy import COUNTED, MIXED, NUMBERS, opened, quadratic, run

optuna = pytest.importorskip("optuna", reason="not installed: python -m pip install -e '.[optuna]'")

ONE = ("minimize",)
SPACES = {**dict.fromkeys(CLASSES, MIXED), **dict.fromkeys(COUNTING, COUNTED)}


@pytest.mark.parametrize("name", CLASSES)
def test_each_sampler_runs(name: str) -> None:
    """Twelve trials in batches, or as many points as there are; none twice."""
    if name == "cmaes":
        pytest.importorskip("cmaes", reason="the extra optuna is not installed")
    space = SPACES[name]
    with opened(space, Sampler(name=name)) as explored:
        points = run(explored, 12)
        assert len(points) == len(set(points)) == min(12, space.size or 12)
        assert explored.best()[0].values[0] == min(map(quadratic, points))


@pytest.mark.parametrize("name", ["tpe", "nsgaii", "nsgaiii", "random", "gp"])
def test_several_objectives(name: str) -> None:
    """Two directions: the trials that no other one beats are the best."""
    with opened(NUMBERS, Sampler(name=name), directions=("minimize", "maximize")) as explored:
        points = run(explored, 12)
        values = {quadratic(point) for point in points}
        assert {
            best.values[0] for best in explored.best()
        } == values  # equal values in both: all are on the front


def test_tpe_beats_random() -> None:
    """On the quadratic, over eight seeds and 60 trials, TPE's median best is less than half of random's."""
    medians = {}
    for name in ("tpe", "random"):
        best = []
        for seed in range(8):
            with opened(NUMBERS, Sampler(name=name, seed=seed)) as explored:
                run(explored, 60)
                best.append(explored.best()[0].values[0])
        medians[name] = sorted(best)[4]
    assert medians["tpe"] < medians["random"] / 2, medians


def test_seed_repeats_a_search() -> None:
    """Equal seeds ask for equal points; another one for others."""

    def points(seed: int) -> list[tuple[str, ...]]:
        with opened(NUMBERS, Sampler(name="tpe", seed=seed)) as explored:
            return run(explored, 12)

    assert points(3) == points(3) != points(4)


def test_settings_reach_the_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting is an argument of Optuna's class; a batch counts its running trials by default."""
    arguments: list[dict[str, object]] = []

    class Recorded(optuna.samplers.TPESampler):
        def __init__(self, n_startup_trials: int = 10, constant_liar: bool = False, **rest: object) -> None:
            arguments.append({"n_startup_trials": n_startup_trials, "constant_liar": constant_liar})
            super().__init__(**rest)

    monkeypatch.setattr(optuna.samplers, "TPESampler", Recorded)
    build(Sampler(settings={"n_startup_trials": 3}), NUMBERS, ONE, 0)
    build(Sampler(settings={"constant_liar": False}), NUMBERS, ONE, 0)
    assert arguments == [
        {"n_startup_trials": 3, "constant_liar": True},
        {"n_startup_trials": 10, "constant_liar": False},
    ]


def test_drawn_at_random() -> None:
    """CMA-ES draws choices at random, and it is told which."""
    assert drawn_at_random(Sampler(name="cmaes"), MIXED) == ("shape",)
    assert drawn_at_random(Sampler(name="tpe"), MIXED) == ()


CHOICES = ParameterSpace(
    parameters=(Choice(name="a", values=(1, 2), texts=("1", "2")), Steps(name="b", first=1, count=9))
)
WIDE = ParameterSpace(parameters=tuple(Steps(name=name, first=0, count=1000) for name in "abc"))


@pytest.mark.parametrize(
    ("sampler", "space", "directions", "message"),
    [
        (
            Sampler(name="tpf"),
            NUMBERS,
            ONE,
            r"unknown sampler 'tpf' \(known: brute_force, cmaes, gp, grid, nsgaii",
        ),
        (
            Sampler(settings={"startup": 1}),
            NUMBERS,
            ONE,
            r"sampler tpe: unknown setting 'startup' \(known: .*n_startup_trials",
        ),
        (
            Sampler(name="cmaes"),
            CHOICES,
            ONE,
            r"sampler cmaes: expected two or more numbers \(range or .*\), got 1 and 1 of other kinds",
        ),
        (Sampler(name="cmaes"), COUNTED, ("minimize", "minimize"), "expected one objective, got 2"),
        (
            Sampler(name="grid"),
            NUMBERS,
            ONE,
            r"grid: x=interval\(-4.0,4.0\) has no steps; expected range or choice",
        ),
        (Sampler(name="brute_force"), NUMBERS, ONE, "brute_force: x=interval.* has no steps"),
        (Sampler(name="grid"), WIDE, ONE, "sampler grid: 1000000000 points, expected at most 1000000"),
        (Sampler(name="qmc", settings={"qmc_type": "sobel"}), NUMBERS, ONE, "sampler qmc: .*sobel"),
    ],
)
def test_what_does_not_fit(sampler: Sampler, space: ParameterSpace, directions, message: str) -> None:
    """One line says what is wrong and what is expected."""
    with pytest.raises(ConfigError, match=message) as error:
        build(sampler, space, directions, 0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("missing", "name"), [("optuna", "tpe"), ("cmaes", "cmaes")])
def test_not_installed(monkeypatch: pytest.MonkeyPatch, missing: str, name: str) -> None:
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ToolchainError, match=re.escape(installation("optuna"))):
        build(Sampler(name=name), NUMBERS, ONE, 0)


def test_optuna_is_loaded_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is executed at each start of Hydra, also where Optuna is not installed."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("optuna", "hydra_plugins")]:
        monkeypatch.delitem(sys.modules, name)
    real_import = builtins.__import__

    def guarded(name: str, *rest, **more):
        assert name.split(".", maxsplit=1)[0] != "optuna", "Optuna was imported"
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", guarded)
    import hydra_plugins.kernelmill_optuna  # noqa: F401


def test_every_class_is_optunas() -> None:
    """The names are those of samplers that the installed Optuna has."""
    import optuna

    assert all(hasattr(optuna.samplers, kind) for kind in samplers.CLASSES.values())
    interval = ParameterSpace(parameters=(Interval(name="x", low=0.0, high=1.0),))
    assert type(build(Sampler(), interval, ONE, 0)).__name__ == "TPESampler"
