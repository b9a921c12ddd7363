"""`hydra.sweeper`, checked."""

import pytest

from pipeline.execution.sweep.sweeper_settings import read_settings
from pipeline.records.errors import ConfigError
from pipeline.search.sampling.samplers import Sampler


def test_defaults() -> None:
    """The direction is that of the objective, and minimize where there is none."""
    sweep = read_settings({"sampler": {"name": "tpe", "seed": 0, "group": None}}, None)
    assert (sweep.sampler, sweep.directions) == (Sampler(name="tpe"), ("minimize",))
    assert (sweep.limits.trials, sweep.limits.batch) == (20, 8)
    assert read_settings({}, "maximize").directions == ("maximize",)
    assert read_settings({"direction": "minimize"}, "maximize").directions == ("minimize",)
    assert read_settings({"direction": ["minimize", "maximize"]}, None).directions == ("minimize", "maximize")


@pytest.mark.parametrize(
    ("given", "sampler"),
    [
        ("cmaes", Sampler(name="cmaes")),
        ({"name": "gp", "seed": None}, Sampler(name="gp", seed=None)),
        ({"name": "tpe", "n_startup_trials": 3}, Sampler(settings={"n_startup_trials": 3})),
        ({"_target_": "optuna.samplers.NSGAIISampler", "seed": 1}, Sampler(name="nsgaii", seed=1)),
    ],
)
def test_sampler(given, sampler: Sampler) -> None:
    """By name alone, with settings, or by the class that the published plugin's yamls name."""
    assert read_settings({"sampler": given}, None).sampler == sampler


def test_jobs_are_a_batch() -> None:
    """The published plugin calls it n_jobs."""
    assert read_settings({"n_jobs": 3}, None).limits.batch == 3


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"batch": 2, "n_jobs": 2}, "got batch and n_jobs, which mean the same; give batch"),
        ({"batch": 0}, "hydra.sweeper.batch: got 0, expected more than 0"),
        ({"n_trials": 0}, "hydra.sweeper.n_trials: got 0"),
        ({"timeout": -1.0}, "hydra.sweeper.timeout: got -1.0"),
        ({"n_trials": "many"}, r"hydra.sweeper: Expected `int`, got `str` - at `\$.n_trials`"),
        ({"max_failure_rate": 1.5}, "max_failure_rate: got 1.5, expected a share from 0 to 1"),
        ({"direction": "up"}, r"hydra.sweeper: .*direction.* \(expected minimize, maximize or a list"),
        ({"direction": []}, "hydra.sweeper.direction: got an empty list"),
        ({"sampler": {"seed": "x"}}, "hydra.sweeper.sampler.seed: got 'x', expected a whole number or null"),
        (
            {"sampler": {"_target_": "my.Sampler"}},
            "_target_: got my.Sampler, expected one of optuna.samplers.Brute",
        ),
        ({"custom_search_space": "a.b"}, "custom_search_space: not taken here"),
    ],
)
def test_errors(plain, message: str) -> None:
    """One line names the key."""
    with pytest.raises(ConfigError, match=message):
        read_settings(plain, None)
