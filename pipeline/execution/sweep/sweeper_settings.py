"""The sweeper's settings. In: the plain mapping `hydra.sweeper`. Out: records, or a line what is wrong.

Keys of the published hydra-optuna-sweeper are taken where they mean the same here.
"""

from collections.abc import Mapping

import msgspec

from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, from_plain
from pipeline.search.sampling.parameter_space import Scalar
from pipeline.search.sampling.samplers import CLASSES, Direction, Sampler, Setting

BATCH = 8

Mentioned = Setting | None
"""A setting of a sampler; None is as if it were not there."""


class SweeperSettings(Record, frozen=True, kw_only=True):
    """`hydra.sweeper` as it stands in the configuration."""

    sampler: str | dict[str, Mentioned] = "tpe"
    direction: Direction | list[Direction] | None = None
    """None: the one of the configured objective, and minimize where there is none."""
    storage: str | None = None
    study_name: str | None = None
    n_trials: int = 20
    batch: int | None = None
    n_jobs: int | None = None
    """What the published plugin calls `batch`."""
    max_failure_rate: float = 0.5
    timeout: float | None = None
    """Seconds."""
    params: dict[str, Scalar | list[Scalar]] | None = None
    custom_search_space: str | None = None
    """Of the published plugin; not taken."""


class SweepLimits(Record, frozen=True, kw_only=True):
    """How far a sweep goes."""

    trials: int
    batch: int
    max_failure_rate: float
    timeout_seconds: float | None


class SweepConfiguration(Record, frozen=True, kw_only=True):
    """The settings, checked."""

    sampler: Sampler
    directions: tuple[Direction, ...]
    storage: str | None
    study_name: str | None
    limits: SweepLimits
    params: dict[str, Scalar | list[Scalar]]


def read_settings(plain: Mapping[str, object], objective: Direction | None) -> SweepConfiguration:
    """Check the settings; `objective` is the direction of the configured objective, if there is one.

    Raises
    ------
    ConfigError
        A wrong type or value; the text names the key.
    """
    try:
        settings = from_plain({key: plain[key] for key in plain if not key.startswith("_")}, SweeperSettings)
    except msgspec.ValidationError as error:
        expected = " (expected minimize, maximize or a list of them)" if "$.direction" in str(error) else ""
        raise ConfigError(f"hydra.sweeper: {error}{expected}") from None
    if settings.custom_search_space is not None:
        raise ConfigError(
            "hydra.sweeper.custom_search_space: not taken here; write the space in hydra.sweeper.params"
        )
    return SweepConfiguration(
        sampler=_sampler(settings.sampler),
        directions=_directions(settings.direction, objective),
        storage=settings.storage or None,
        study_name=settings.study_name,
        limits=_limits(settings),
        params=settings.params or {},
    )


def _sampler(given: str | dict[str, Mentioned]) -> Sampler:
    """A name alone, or a mapping with the name, the seed and the settings; `null` is as Optuna has it."""
    if isinstance(given, str):
        return Sampler(name=given)
    mapping = {key: value for key, value in given.items() if key not in ("name", "seed", "_target_")}
    seed = given.get("seed", 0)
    if not (seed is None or type(seed) is int):
        raise ConfigError(f"hydra.sweeper.sampler.seed: got {seed!r}, expected a whole number or null")
    return Sampler(
        name=_sampler_name(given),
        seed=seed,
        settings={key: value for key, value in mapping.items() if value is not None},
    )


def _sampler_name(given: dict[str, Mentioned]) -> str:
    """By name, or by the class that the published plugin's yamls give."""
    target = given.get("_target_")
    if target is None:
        return str(given.get("name", "tpe"))
    names = {f"optuna.samplers.{kind}": name for name, kind in CLASSES.items()}
    if not isinstance(target, str) or target not in names:
        raise ConfigError(f"hydra.sweeper.sampler._target_: got {target}, expected one of {', '.join(names)}")
    return names[target]


def _directions(
    given: Direction | list[Direction] | None, objective: Direction | None
) -> tuple[Direction, ...]:
    if given is None:
        return (objective or "minimize",)
    if not given:
        raise ConfigError("hydra.sweeper.direction: got an empty list, expected minimize or maximize")
    return tuple(given) if isinstance(given, list) else (given,)


def _limits(settings: SweeperSettings) -> SweepLimits:
    if settings.batch is not None and settings.n_jobs is not None:
        raise ConfigError("hydra.sweeper: got batch and n_jobs, which mean the same; give batch")
    given = settings.batch if settings.batch is not None else settings.n_jobs
    batch = BATCH if given is None else given
    for key, number in (("n_trials", settings.n_trials), ("batch", batch), ("timeout", settings.timeout)):
        if number is not None and number <= 0:
            raise ConfigError(f"hydra.sweeper.{key}: got {number}, expected more than 0")
    if not 0 <= settings.max_failure_rate <= 1:
        raise ConfigError(
            f"hydra.sweeper.max_failure_rate: got {settings.max_failure_rate}, expected a share from 0 to 1"
        )
    return SweepLimits(
        trials=settings.n_trials,
        batch=batch,
        max_failure_rate=settings.max_failure_rate,
        timeout_seconds=settings.timeout,
    )
