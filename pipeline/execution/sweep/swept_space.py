"""The space of a sweep. In: overrides in Hydra's grammar. Out: what is searched, and what is fixed.

choice, a comma list and glob are choices; range and interval are numbers (`tag(log, …)`: on a logarithmic
scale; `tag(int, interval(…))` or `int(interval(…))`: whole ones). Everything else is passed through, and so
is what can have one value only.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

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
from pipeline.records.record import Record
from pipeline.search.sampling.parameter_space import Choice, Interval, Parameter, Scalar, Space, Steps

TAGS = ("int", "log")

Options = Callable[[str], Iterable[str]]
"""Options of a config group; none where the key is not a group."""


class Swept(Record, frozen=True, kw_only=True):
    """What a sweep was asked for."""

    space: Space
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
        space=Space(parameters=parameters), fixed=tuple(part for part in read if isinstance(part, str))
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
