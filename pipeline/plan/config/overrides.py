"""Overrides in Hydra's grammar: which options they choose, and which values they set in them.

A sweep over a number repeats the same override with other numbers. Parsing one takes half a millisecond, so a
number is put into a copy of an override that was parsed before.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable
from pathlib import Path

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException

from pipeline.plan.config.groups import AXES, GROUPS, check_option, options
from pipeline.records.errors import ConfigError, hint
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
            _, dot = _group(override, line, conf)
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
                continue
            before = choices.setdefault(found.group, found.names)
            if before != found.names:
                both = ",".join(dict.fromkeys((*before, *found.names)))
                advice = f"write {found.group}={both} for both" if found.group in AXES else "choose one"
                raise ConfigError(f"{line}: {found.group} is already {','.join(before)} ({advice})")
        return Overrides(choices=choices, values=values)


def _read(line: str, conf: Path) -> _Line:
    override = read_override(line)
    group, dot = _group(override, line, conf)
    if dot:
        if override.is_sweep_override():
            raise ConfigError(f"{line}: several values where there can be one (a list is written [1,2])")
        return _Line(group=group, names=None)
    names = _names(override, line, conf)
    if not names or (group not in AXES and len(names) > 1):
        known = hint("", options(conf, group), folder=f"{conf.name}/{group}")
        raise ConfigError(f"{line}: expected one {group}{known}")
    return _Line(group=group, names=names)


def _group(override: Override, line: str, conf: Path) -> tuple[str, bool]:
    """The group, and whether the line goes on into it."""
    group, dot, _ = override.key_or_group.partition(".")
    if group == "hydra" or override.key_or_group.startswith(HYDRA):
        where = "kernelmill sweep takes it; all jobs of a sweep have the same"
        raise ConfigError(f"{line}: a setting of Hydra ({where})")
    if group not in GROUPS:
        if _is_tunable(group, conf):
            raise ConfigError(f"{line}: a tunable; its value is set by optimization.fixed.{line}")
        raise ConfigError(f"{line}: unknown group '{group}'{hint(group, GROUPS)}")
    return group, bool(dot)


def _is_tunable(name: str, conf: Path) -> bool:
    """Whether a kernel's yaml, read as text, has such a key where tunables stand."""
    key = re.compile(rf"^ {{6}}{re.escape(name)}:", re.MULTILINE)
    return any(key.search(path.read_text(errors="replace")) for path in (conf / "kernel").rglob("*.yaml"))


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


VALUE_FIELD = "_value"
"""Hydra's private field of an override's value: copying a parsed override is ten times as fast as parsing."""
COPIED_IN = "1.3."
"""The versions of Hydra in which that was tried; under any other one, every override is parsed."""
# The grammar's INT and FLOAT without underscores and without what Python would refuse to convert.
_INT = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}(?:[eE][+-]?[0-9]{1,3})?")


def can_copy_overrides() -> bool:
    """Whether this Hydra's overrides have the private field that copying one with another value needs."""
    fields = {field.name for field in dataclasses.fields(Override)}
    return hydra.__version__.startswith(COPIED_IN) and VALUE_FIELD in fields


@functools.lru_cache(maxsize=1 << 16)  # reading costs half a millisecond, and a sweep says the same often
def read_override(line: str) -> Override:
    """One override, which callers must not change.

    Raises
    ------
    ConfigError
        Not in the grammar.
    """
    key, equal, value = line.partition("=")  # a key holds none
    number = _number(value) if equal and can_copy_overrides() else None
    like = _with_a_number(key) if number is not None else None
    if like is not None:
        return dataclasses.replace(like, _value=number, input_line=line)
    try:
        return _parse_line(line)
    except HydraException:
        expected = "group=option, group=option,option or group.key=value"
        if re.fullmatch(r"\w+", line):
            expected = "group=option, as in kernel=softmax"
        raise ConfigError(f"{line}: not an override (expected {expected})") from None


def _number(text: str) -> int | float | None:
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else None


@functools.lru_cache(maxsize=1 << 12)
def _with_a_number(key: str) -> Override | None:
    """What `key=0` says; None where it says nothing."""
    try:
        return _parse_line(f"{key}=0")
    except HydraException:
        return None


def _parse_line(line: str) -> Override:
    return OverridesParser.create().parse_override(line)
