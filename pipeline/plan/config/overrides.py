"""Read overrides, which both front doors take: which options are chosen, and which values are set in them."""

import functools
from collections.abc import Iterable
from pathlib import Path

from hydra.core.override_parser.types import Glob, Override

from pipeline.plan.config.grammar import read_override
from pipeline.plan.config.groups import AXES, GROUPS, check_option, hint, options
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record

HYDRA = ("hydra.", "hydra/")


class Overrides(Record, frozen=True, kw_only=True):
    """What the user asked for, in Hydra's grammar."""

    choices: dict[str, tuple[str, ...]]
    """Group -> options; several for an axis, one for settings."""
    values: dict[str, tuple[str, ...]]
    """Group -> overrides of values in its chosen options, as written."""


class _Line(Record, frozen=True, kw_only=True):
    group: str
    names: tuple[str, ...] | None
    """Options; None where the line sets a value."""


def parse(lines: Iterable[str], conf: Path) -> Overrides:
    """Sort overrides into choices and values.

    Raises
    ------
    ConfigError
        Not in the grammar, an unknown group or option, or several options where there can be one.
    """
    return Reader(conf).read(lines)


def check_sweep(lines: Iterable[str], conf: Path) -> None:
    """Groups and options that a sweep names exist, before Hydra composes anything; its own are left to Hydra.

    Raises
    ------
    ConfigError
        Not in the grammar, or an unknown group or option.
    """
    for line in lines:
        override = read_override(line)
        if not override.is_hydra_override() and override.key_or_group != "hydra":
            _, dot = _group(override, line)
            if not dot:
                _names(override, line, conf)


class Reader:
    """Reads overrides against one configuration folder; lines that many jobs have are read once."""

    def __init__(self, conf: Path) -> None:
        self._line = functools.cache(lambda line: _read(line, conf))

    def read(self, lines: Iterable[str]) -> Overrides:
        """As `parse`."""
        choices: dict[str, tuple[str, ...]] = {}
        values: dict[str, tuple[str, ...]] = {}
        for line in lines:
            found = self._line(line)
            if found.names is None:
                values[found.group] = (*values.get(found.group, ()), line)
            else:
                choices[found.group] = found.names
        return Overrides(choices=choices, values=values)


def _read(line: str, conf: Path) -> _Line:
    override = read_override(line)
    group, dot = _group(override, line)
    if dot:
        if override.is_sweep_override():
            raise ConfigError(f"{line}: several values where there can be one (a list is written [1,2])")
        return _Line(group=group, names=None)
    names = _names(override, line, conf)
    if not names or (group not in AXES and len(names) > 1):
        raise ConfigError(f"{line}: expected one {group} {hint('', options(conf, group))}")
    return _Line(group=group, names=names)


def _group(override: Override, line: str) -> tuple[str, bool]:
    """The group, and whether the line goes on into it."""
    group, dot, _ = override.key_or_group.partition(".")
    if group == "hydra" or override.key_or_group.startswith(HYDRA):
        where = "python -m pipeline -m takes it; all jobs of a sweep have the same"
        raise ConfigError(f"{line}: a setting of Hydra ({where})")
    if group not in GROUPS:
        raise ConfigError(f"{line}: unknown group '{group}' {hint(group, GROUPS)}")
    return group, bool(dot)


def _names(override: Override, line: str, conf: Path) -> tuple[str, ...]:
    """The options that exist and are named."""
    group = override.key_or_group
    if override.is_add() or override.is_delete() or override.package or override.is_interval_sweep():
        raise ConfigError(f"{line}: expected {group}=option")
    value = override.value()
    if isinstance(value, Glob):
        return tuple(value.filter(list(options(conf, group))))
    if override.is_sweep_override():
        found = [str(name) for name in override.sweep_string_iterator()]
    else:
        found = [str(name) for name in value] if isinstance(value, list) else [str(value)]
    names = tuple(dict.fromkeys(found))
    for name in names:
        check_option(conf, group, name, line)
    return names
