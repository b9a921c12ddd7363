"""Overrides of values: whether one applies to an option, and what to say when it applies to none.

`group.key=value` sets a key that the option has, or a field of the group's record that it leaves at its
default. A name in a mapping (a tunable, a dimension) must be there; `+group.key.name=value` adds one.
"""

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from hydra.core.override_parser.types import OverrideType

from pipeline.plan.config.grammar import read_override
from pipeline.plan.config.groups import GROUPS, hint
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record

Plain = dict[str, Any]


class _Gap(Record, frozen=True, kw_only=True):
    """Where a key leaves what is there."""

    path: tuple[str, ...]
    part: str
    known: tuple[str, ...]
    is_field: bool
    """Whether the record has such a field, at its default here."""


def applicable(line: str, group: str, plain: Plain) -> str | None:
    """The override as Hydra must get it for this option, or None where it does not apply."""
    override = read_override(line)
    if override.type in (OverrideType.ADD, OverrideType.FORCE_ADD):
        return line
    gap = _gap(override.key_or_group, group, plain)
    if gap is None:
        return line
    return f"++{line}" if gap.is_field and override.type is OverrideType.CHANGE else None


def split_by_option(
    lines: Iterable[str], group: str, options: Mapping[str, Plain]
) -> dict[str, tuple[str, ...]]:
    """Option -> the overrides that apply to it.

    Raises
    ------
    ConfigError
        One applies to no option; the text lists the known keys.
    """
    applied: dict[str, list[str]] = {name: [] for name in options}
    for line in lines:
        takers = {
            name: changed for name, plain in options.items() if (changed := applicable(line, group, plain))
        }
        if not takers and options:
            raise ConfigError(_no_taker(line, group, list(options.values())))
        for name, changed in takers.items():
            applied[name].append(changed)
    return {name: tuple(taken) for name, taken in applied.items()}


def _no_taker(line: str, group: str, plains: list[Plain]) -> str:
    """The option that has most of the key's path is the example."""
    override = read_override(line)
    gaps = [gap for plain in plains if (gap := _gap(override.key_or_group, group, plain))]
    gap = max(gaps, key=lambda each: len(each.path))
    several = "no chosen option has" if len(plains) > 1 else "there is no"
    return f"{line}: {several} '{gap.part}' in {'.'.join(gap.path)} {hint(gap.part, gap.known)}"


def _gap(key: str, group: str, plain: Plain) -> _Gap | None:
    """None where the key exists."""
    value: Any = {group: plain}
    kind: Any = None
    path: list[str] = []
    for part in key.split("."):
        fields = _fields(kind)
        known = _names(value)
        if part not in known:
            every = tuple(dict.fromkeys([*known, *fields]))
            return _Gap(path=tuple(path), part=part, known=every, is_field=part in fields)
        value = value[int(part)] if isinstance(value, list) else value[part]
        kind = GROUPS[group] if not path else fields.get(part, _item(kind))
        path.append(part)
    return None


def _names(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [str(name) for name in value]
    return [str(number) for number in range(len(value))] if isinstance(value, list) else []


def _fields(kind: Any) -> dict[str, Any]:
    """Fields of a record with their types; none for other types."""
    for each in _alternatives(kind):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return {field.name: field.type for field in msgspec.structs.fields(each)}
    return {}


def _item(kind: Any) -> Any:
    """Type of what a mapping or a list holds."""
    for each in _alternatives(kind):
        if typing.get_origin(each) in (dict, tuple):
            return typing.get_args(each)[1 if typing.get_origin(each) is dict else 0]
    return None


def _alternatives(kind: Any) -> tuple[Any, ...]:
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)
