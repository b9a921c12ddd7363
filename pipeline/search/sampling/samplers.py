"""Optuna's samplers by name: their settings, what they can search, and how they are created."""

import inspect
import warnings
from typing import TYPE_CHECKING, Any, Literal

from pipeline.records.errors import ConfigError, ToolchainError, installation
from pipeline.records.record import Record
from pipeline.search.sampling.parameter_space import Choice, Interval, ParameterSpace

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

CLASSES = {
    "brute_force": "BruteForceSampler",
    "cmaes": "CmaEsSampler",
    "gp": "GPSampler",
    "grid": "GridSampler",
    "nsgaii": "NSGAIISampler",
    "nsgaiii": "NSGAIIISampler",
    "qmc": "QMCSampler",
    "random": "RandomSampler",
    "tpe": "TPESampler",
}
"""Name -> class in `optuna.samplers`."""

OBJECTS = frozenset(
    (
        *("after_trial_strategy", "child_generation_strategy", "constraints_func", "crossover"),
        *("elite_population_selection_strategy", "gamma", "independent_sampler", "mutation"),
        *("reference_points", "search_space", "seed", "self", "source_trials", "weights"),
    )
)
"""Arguments of the classes that no configuration can hold, or that are given elsewhere."""

COUNTED = ("brute_force", "grid")
"""Samplers that enumerate the points."""

GRID_POINTS = 1_000_000  # the grid sampler holds all of them in memory

Direction = Literal["minimize", "maximize"]
Setting = bool | int | float | str | dict[str, float]


class Sampler(Record, frozen=True, kw_only=True):
    """A sampler of Optuna by name."""

    name: str = "tpe"
    seed: int | None = 0
    """None: another sequence each time."""
    settings: dict[str, Setting] = {}
    """Arguments of the class; what is not given is as Optuna has it."""


def require_optuna() -> None:
    """Raise ToolchainError unless Optuna can be imported."""
    try:
        import optuna
    except ImportError as error:
        raise ToolchainError(f"Optuna cannot be imported ({error}): {installation('optuna')}") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def build(
    sampler: Sampler, space: ParameterSpace, directions: tuple[Direction, ...], told: int
) -> "BaseSampler":
    """The sampler, for a study that holds `told` trials.

    A seed gives a sequence of random numbers; a study that is resumed must not begin it again, or it would
    ask for the points that it has. Grid and QMC keep their place in the study instead, and with it the seed.

    Raises
    ------
    ConfigError
        An unknown name or setting, a setting's value, or a space or objectives that it cannot search.
    ToolchainError
        Optuna, or another package that this sampler needs, is not installed.
    """
    require_optuna()
    check(sampler, space, directions)
    import optuna

    kind = getattr(optuna.samplers, CLASSES[sampler.name])
    arguments: dict[str, Any] = dict(sampler.settings)
    seed = sampler.seed
    if seed is not None and told and sampler.name not in ("grid", "qmc"):
        seed = (seed + 7919 * told) % 2**32
    if sampler.name == "tpe":
        # Trials of the batch under way count as bad ones, so that a batch is not eight times the same idea.
        arguments.setdefault("constant_liar", True)
    elif "warn_independent_sampling" in inspect.signature(kind).parameters:
        arguments.setdefault("warn_independent_sampling", False)  # `drawn_at_random` says it, once
    if sampler.name == "grid":
        arguments["search_space"] = {
            parameter.name: [parameter.at(index) for index in range(parameter.size or 0)]
            for parameter in space.parameters
        }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a setting is experimental or will be renamed
            built: BaseSampler = kind(seed=seed, **arguments)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ConfigError(f"sampler {sampler.name}: {_line(error)}") from None
    except ImportError as error:
        raise _missing(sampler, error) from None
    return built


def check(sampler: Sampler, space: ParameterSpace, directions: tuple[Direction, ...]) -> None:
    """Raise ConfigError for a name, a setting, a space or objectives that do not fit; see `build`."""
    known = settings_of(sampler.name)
    for name in sampler.settings:
        if name not in known:
            raise ConfigError(f"sampler {sampler.name}: unknown setting '{name}' (known: {', '.join(known)})")
    if sampler.name in COUNTED:
        for parameter in space.parameters:
            if isinstance(parameter, Interval):
                raise ConfigError(
                    f"sampler {sampler.name}: {parameter.name}={parameter} has no steps; "
                    "expected range or choice"
                )
    if sampler.name == "grid" and (space.size or 0) > GRID_POINTS:
        raise ConfigError(
            f"sampler grid: {space.size} points, expected at most {GRID_POINTS}; use random or tpe"
        )
    if sampler.name == "cmaes":
        _check_cmaes(space, directions)


def _check_cmaes(space: ParameterSpace, directions: tuple[Direction, ...]) -> None:
    """CMA-ES needs two or more numeric parameters and one objective."""
    if len(directions) > 1:
        raise ConfigError(f"sampler cmaes: expected one objective, got {len(directions)}; use nsgaii or tpe")
    numbers = [part for part in space.parameters if not isinstance(part, Choice) and part.size != 1]
    if len(numbers) < 2:
        raise ConfigError(
            f"sampler cmaes: expected two or more numbers (range or interval), got {len(numbers)} "
            f"and {len(space.parameters) - len(numbers)} of other kinds; use tpe"
        )
    try:
        import cmaes  # noqa: F401
    except ImportError as error:
        raise _missing(Sampler(name="cmaes"), error) from None


def settings_of(name: str) -> tuple[str, ...]:
    """Names of the settings of a sampler.

    Raises
    ------
    ConfigError
        Unknown name; the text lists the known ones.
    """
    if name not in CLASSES:
        raise ConfigError(f"unknown sampler '{name}' (known: {', '.join(CLASSES)})")
    import optuna

    parameters = inspect.signature(getattr(optuna.samplers, CLASSES[name])).parameters
    return tuple(sorted(parameter for parameter in parameters if parameter not in OBJECTS))


def drawn_at_random(sampler: Sampler, space: ParameterSpace) -> tuple[str, ...]:
    """Names of the parameters that this sampler draws at random instead of searching."""
    if sampler.name != "cmaes":
        return ()
    return tuple(part.name for part in space.parameters if isinstance(part, Choice) and part.size > 1)


def _missing(sampler: Sampler, error: ImportError) -> ToolchainError:
    return ToolchainError(
        f"sampler {sampler.name}: cannot be used ({_line(error)}): {installation('optuna')}"
    )


def _line(error: Exception) -> str:
    """The first line of an error, which can be a page."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
