"""An Optuna sweep: overrides in Hydra's grammar and `hydra.sweeper` in; the space, and the settings, out.

choice, a comma list and glob are choices; range and interval are numbers (`tag(log, …)`: on a logarithmic
scale; `tag(int, interval(…))` or `int(interval(…))`: whole ones). Everything else is passed through, and so
is what can have one value only.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import (
    ChoiceSweep,
    Glob,
    IntervalSweep,
    Override,
    QuotedString,
    RangeSweep,
    Sweep,
    Transformer,
)
from hydra.errors import HydraException

from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, from_plain
from pipeline.search.sampling.parameter_space import (
    Choice,
    Interval,
    Parameter,
    ParameterSpace,
    Scalar,
    Steps,
)
from pipeline.search.sampling.samplers import CLASSES, Direction, Sampler, Setting

TAGS = ("int", "log")

Options = Callable[[str], Iterable[str]]
"""Options of a config group; none where the key is not a group."""


class Swept(Record, frozen=True, kw_only=True):
    """What a sweep was asked for."""

    space: ParameterSpace
    fixed: tuple[str, ...]
    """Overrides that are the same in all jobs."""


def read_space(params: Mapping[str, Any], arguments: Iterable[str], options: Options) -> Swept:
    """The space of `hydra.sweeper.params` and of the command line, which wins where both name a key.

    Raises
    ------
    ConfigError
        Not in the grammar, a range without a number, an interval for a group, an unknown option or tag, or
        nothing to search.
    """
    lines = [*(f"{key}={_text(value)}" for key, value in params.items()), *arguments]
    overrides = {_key(override): override for override in map(_parsed, lines)}
    read = [_read(override, options) for override in overrides.values()]
    parameters = tuple(part for part in read if not isinstance(part, str))
    if not parameters:
        raise ConfigError(
            "nothing to search: give key=choice(a,b), key=range(1,9), key=interval(0,1) or group=choice(a,b) "
            "on the command line or in hydra.sweeper.params"
        )
    return Swept(
        space=ParameterSpace(parameters=parameters),
        fixed=tuple(part for part in read if isinstance(part, str)),
    )


def _read(override: Override, options: Options) -> Parameter | str:
    """A parameter, or an override that is the same in all jobs."""
    if not override.is_sweep_override():
        return _line(override)
    parameter = _parameter(override, tuple(options(override.key_or_group)))
    return parameter if parameter.size != 1 else f"{parameter.name}={parameter.text(parameter.at(0))}"


def _key(override: Override) -> tuple[str, str | None, bool]:
    """What an override is about: a later one about the same replaces it."""
    return override.key_or_group, override.package, override.is_delete()


def _text(value: Any) -> str:
    """A value of a yaml as an override has it."""
    return "null" if value is None else str(value)


def _line(override: Override) -> str:
    """The override as it was written."""
    assert override.input_line is not None  # the parser sets it
    return override.input_line


def _parsed(line: str) -> Override:
    try:
        return OverridesParser.create().parse_overrides([line])[0]
    except HydraException as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{line}: not an override in Hydra's grammar ({reason})") from None


def _parameter(override: Override, options: tuple[str, ...]) -> Parameter:
    """The parameter of one override; `options` are the group's, if it is one."""
    sweep = override.value()
    try:
        if options:
            return _group_choice(override, options)
        if isinstance(sweep, Glob):
            raise ValueError("glob is for config groups, and this is none")
        tags = sweep.tags if isinstance(sweep, Sweep) else set()
        unknown = sorted(tags - set(TAGS))
        if unknown:
            raise ValueError(f"unknown tag '{unknown[0]}' (known: {', '.join(TAGS)})")
        return _value_parameter(override.get_key_element(), sweep, tags)
    except ValueError as error:
        raise ConfigError(f"{_line(override)}: {error}") from None


def _group_choice(override: Override, options: tuple[str, ...]) -> Choice:
    """Options of a group."""
    sweep = override.value()
    known = f"(known: {', '.join(options)})"
    if isinstance(sweep, Glob):
        names = sweep.filter(list(options))
        if not names:
            raise ValueError(f"no {override.key_or_group} is like that {known}")
    elif isinstance(sweep, ChoiceSweep):
        names = [str(_plain(element)) for element in sweep.list]
    else:
        raise ValueError(
            f"{override.key_or_group} is a config group, which has options and no numbers; "
            f"expected choice(…) {known}"
        )
    for name in names:
        if name not in options:
            raise ValueError(f"unknown {override.key_or_group} '{name}' {known}")
    distinct = tuple(dict.fromkeys(names))
    return Choice(name=override.get_key_element(), values=distinct, texts=distinct)


def _value_parameter(name: str, sweep: object, tags: set[str]) -> Parameter:
    if isinstance(sweep, ChoiceSweep):
        if tags:
            raise ValueError("tags are for range and interval")
        return _choice(name, sweep)
    if isinstance(sweep, RangeSweep):
        return _steps(name, sweep, tags)
    assert isinstance(sweep, IntervalSweep)  # the grammar has no other
    return _interval(name, sweep, tags)


def _choice(name: str, sweep: ChoiceSweep) -> Choice:
    """Values as they are where Optuna can hold and tell them apart, else what is written."""
    written = {Transformer.str(element): _plain(element) for element in sweep.list}
    texts = tuple(written)
    values = tuple(written.values())
    return Choice(name=name, values=values if _can_be_held(values) else texts, texts=texts)


def _plain(element: Any) -> Any:
    return element.text if isinstance(element, QuotedString) else element


def _can_be_held(values: tuple[Any, ...]) -> bool:
    """Whether these are scalars, distinct under == (1, True and 1.0 are not)."""
    scalars: list[Scalar] = [value for value in values if isinstance(value, bool | int | float | str | None)]
    if len(scalars) < len(values) or len(set(scalars)) < len(values):
        return False
    return all(math.isfinite(value) for value in scalars if isinstance(value, float))


def _steps(name: str, sweep: RangeSweep, tags: set[str]) -> Steps:
    """A range as Hydra's basic sweeper has it: without its stop."""
    assert sweep.start is not None and sweep.stop is not None  # the grammar fills them in
    numbers = (sweep.start, sweep.stop, sweep.step)
    if "int" in tags and not all(isinstance(number, int) for number in numbers):
        raise ValueError("tag(int, …) of a range with fractions")
    start, stop, step = (Decimal(str(number)) for number in numbers)
    if step == 0 or not all(number.is_finite() for number in (start, stop, step)):
        raise ValueError("expected finite numbers and a step that is not 0")
    count = max(math.ceil((stop - start) / step), 0)
    if count == 0:
        raise ValueError("the range holds no number")
    first = start if step > 0 else start + (count - 1) * step
    real = any(isinstance(number, float) for number in numbers)
    return Steps(
        name=name,
        first=float(first) if real else int(first),
        step=float(abs(step)) if real else int(abs(step)),
        count=count,
        log="log" in tags,
    )


def _interval(name: str, sweep: IntervalSweep, tags: set[str]) -> Interval | Steps:
    assert sweep.start is not None and sweep.end is not None  # the grammar has them
    low, high, log = sweep.start, sweep.end, "log" in tags
    whole = isinstance(low, int) and isinstance(high, int)  # int(interval(…)) leaves whole numbers
    if not whole and "int" not in tags:
        return Interval(name=name, low=float(low), high=float(high), log=log)
    if not (float(low).is_integer() and float(high).is_integer()):
        raise ValueError("tag(int, …) of an interval whose ends are no whole numbers")
    return Steps(name=name, first=int(low), count=int(high) - int(low) + 1, log=log)


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
