"""Read overrides, which both front doors take: which options are chosen, and which values are set in them."""

from collections.abc import Iterable
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException

from pipeline.config.groups import AXES, GROUPS, check_option, hint, options
from pipeline.errors import ConfigError
from pipeline.records.record import Record


class Overrides(Record, frozen=True, kw_only=True):
    """What the user asked for, in Hydra's grammar."""

    choices: dict[str, tuple[str, ...]]
    """Group -> options; several for an axis, one for settings."""
    values: dict[str, tuple[str, ...]]
    """Group -> overrides of values in its chosen options, as written."""


def parse(lines: Iterable[str], conf: Path) -> Overrides:
    """Sort overrides into choices and values.

    Raises
    ------
    ConfigError
        Not in the grammar, an unknown group or option, or several options where there can be one.
    """
    choices: dict[str, tuple[str, ...]] = {}
    values: dict[str, tuple[str, ...]] = {}
    for line in lines:
        override = _parsed(line)
        group, dot, _ = override.key_or_group.partition(".")
        if group not in GROUPS:
            raise ConfigError(f"{line}: unknown group '{group}' {hint(group, GROUPS)}")
        if dot:
            values[group] = (*values.get(group, ()), _value(override, line))
        else:
            choices[group] = _choices(override, line, conf)
    return Overrides(choices=choices, values=values)


def _parsed(line: str) -> Override:
    try:
        return OverridesParser.create().parse_override(line)
    except HydraException:
        expected = "group=option, group=option,option or group.key=value"
        raise ConfigError(f"{line}: not an override (expected {expected})") from None


def _value(override: Override, line: str) -> str:
    if override.is_sweep_override():
        raise ConfigError(f"{line}: several values where there can be one (a list is written [1,2])")
    return line


def _choices(override: Override, line: str, conf: Path) -> tuple[str, ...]:
    group = override.key_or_group
    if override.is_add() or override.is_delete() or override.package is not None:
        raise ConfigError(f"{line}: expected {group}=option")
    names = _names(override, options(conf, group))
    for name in names:
        check_option(conf, group, name, line)
    if not names or (group not in AXES and len(names) > 1):
        raise ConfigError(f"{line}: expected one {group} {hint('', options(conf, group))}")
    return names


def _names(override: Override, known: tuple[str, ...]) -> tuple[str, ...]:
    value = override.value()
    if isinstance(value, Glob):
        return tuple(value.filter(list(known)))
    if override.is_sweep_override():
        found = [str(name) for name in override.sweep_string_iterator()]
    else:
        found = [str(name) for name in value] if isinstance(value, list) else [str(value)]
    return tuple(dict.fromkeys(found))
