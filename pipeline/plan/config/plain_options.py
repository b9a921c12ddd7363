"""Options as plain mappings, without Hydra: files read with libyaml, values set in copies, mappings as YAML.

Composing an option with Hydra costs 15 ms, even if it interpolates nothing. Such a file is read here with
libyaml by the rules of OmegaConf's loader: `1e3` is a number, a timestamp is a string, a duplicate key is an
error. With `defaults: [parent, _self_]`, both files are merged as OmegaConf merges. Everything else, every
mistake included, is left to Hydra, which reports it.

`group.key=value` sets a key that the option has, or a field of the group's record that it leaves at its
default. A name in a mapping (a tunable, a dimension) must exist; `+group.key.name=value` adds one. What is
set here is what Hydra would set; anything more complex (an interpolation, a new key, a mapping, an item of a
list) is left to Hydra.
"""

import re
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import OverrideType

from pipeline.plan.config.groups import schema_of
from pipeline.plan.config.overrides import read_override
from pipeline.records.errors import ConfigError, hint
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
    return f"{line}: {several} '{gap.part}' in {'.'.join(gap.path)}{hint(gap.part, gap.known)}"


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
        kind = fields.get(part, _item(kind)) if path else schema_of(group, plain)
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


INTERPOLATION = "${"


def with_values(plain: Plain, group: str, lines: Iterable[str]) -> Plain | None:
    """A copy with these values, in the order given; None where only Hydra can say what comes out.

    The lines are as `applicable` returns them; `plain` holds no interpolation.
    """
    changed: Plain | None = plain
    for line in lines:
        if changed is not None:
            changed = _with_value(changed, group, line)
    return changed


def _with_value(plain: Plain, group: str, line: str) -> Plain | None:
    override = read_override(line)
    if override.type is OverrideType.DEL or override.package is not None:
        return None
    value = override.value()
    if not _is_simple(value):
        return None
    head, *path = override.key_or_group.split(".")
    if head != group or not path:
        return None
    return _at(plain, path, value, override.type)


def _at(plain: Plain, path: list[str], value: Any, how: OverrideType) -> Plain | None:
    """The mapping with a value at the end of the path; everything else is shared with the original."""
    name, *rest = path
    if not rest:
        return {**plain, name: value} if _may_stand(plain, name, value, how) else None
    below = plain.get(name, None if how is OverrideType.CHANGE else {})
    if not isinstance(below, dict):
        return None
    changed = _at(below, rest, value, how)
    return None if changed is None else {**plain, name: changed}


def _may_stand(plain: Plain, name: str, value: Any, how: OverrideType) -> bool:
    """Whether Hydra would put the value there: `+key` where there is none, `key` where there is one."""
    if isinstance(value, list) and isinstance(plain.get(name), dict):
        return False
    return how is OverrideType.FORCE_ADD or (name in plain) == (how is OverrideType.CHANGE)


def _is_simple(value: Any) -> bool:
    """Whether OmegaConf would put it there as it is."""
    if isinstance(value, list):
        return all(_is_simple(item) and not isinstance(item, list) for item in value)
    if isinstance(value, str):
        return INTERPOLATION not in value and value != "???"
    return value is None or isinstance(value, bool | int | float)


_COMPOSED = ("${", "@package")
"""Texts that mean something to Hydra or OmegaConf."""
_HYDRAS = ("hydra",)
"""Keys that do, besides a defaults list."""
_NAME = re.compile(r"(?!_)\w+")
"""An option's plain name: neither `_self_`, nor with a path, a package or a keyword."""
_FLOAT_TAG, _TIMESTAMP_TAG = "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"
_FLOAT = re.compile(
    r"""^(?:
     [-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
    |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
    |[-+]?\.(?:inf|Inf|INF)
    |\.(?:nan|NaN|NAN))$""",
    re.X,
)
"""What OmegaConf reads as a float: YAML 1.2's scientific notation and YAML 1.1's forms."""
_BOOLEANS = frozenset(
    word for plain in ("y", "n", "yes", "no", "true", "false", "on", "off")
    for word in (plain, plain.capitalize(), plain.upper())
)  # fmt: skip


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """Reads as OmegaConf does."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """Raises where a key stands twice."""
        keys = [
            key.value for key, _ in node.value if key.tag == yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG
        ]
        if len(set(keys)) < len(keys):
            raise yaml.YAMLError("duplicate key")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_Loader.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+0123456789."))
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP_TAG]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    """Writes as OmegaConf does: strings that its loader would take for something else are quoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (the signature is PyYAML's)
        """Configurations share objects; each file stands for itself."""
        return True


def _represent_text(dumper: yaml.Dumper, text: str) -> yaml.ScalarNode:
    quoted = text in _BOOLEANS or _is_number(text)
    tag = yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG
    return dumper.represent_scalar(tag, text, style="'" if quoted else None)


_Dumper.add_representer(str, _represent_text)


def read_literal(conf: Path, group: str, name: str) -> Plain | None:
    """The option, which callers must not change; None if only Hydra can compose it."""
    if group in ConfigStore.instance().repo:  # registered by a plugin, which may take precedence
        return None
    return _read(conf / group, name, heirs=())


def parent_of(conf: Path, group: str, name: str) -> str | None:
    """The option from which another one inherits; None where it inherits from none, or only Hydra knows."""
    try:
        found = yaml.load((conf / group / f"{name}.yaml").read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError):
        return None
    return _parent(found.get("defaults")) if isinstance(found, dict) else None


def _read(folder: Path, name: str, *, heirs: tuple[str, ...]) -> Plain | None:
    """An option, and what it inherits; `heirs` are those that inherit from it."""
    try:
        text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
        found = None if any(each in text for each in _COMPOSED) else yaml.load(text, Loader=_Loader)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError):
        return None
    if not isinstance(found, dict) or any(key in found for key in _HYDRAS) or not _is_plain(found):
        return None
    if "defaults" not in found:
        return found
    parent = _parent(found.pop("defaults"))
    if parent is None or parent in (name, *heirs):
        return None
    inherited = _read(folder, parent, heirs=(name, *heirs))
    return None if inherited is None else _merged(inherited, found)


def _parent(defaults: Any) -> str | None:
    """The one option of the same group that a defaults list names ahead of `_self_`."""
    if not isinstance(defaults, list) or len(defaults) != 2 or defaults[1] != "_self_":
        return None
    return defaults[0] if isinstance(defaults[0], str) and _NAME.fullmatch(defaults[0]) else None


def _merged(inherited: Plain, own: Plain) -> Plain | None:
    """As OmegaConf merges; None where a mapping meets something else, or a value is marked as missing."""
    merged = dict(inherited)
    for key, value in own.items():
        before = inherited.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            merged[key] = _merged(before, value)
            if merged[key] is None:
                return None
        elif key in inherited and (value == "???" or isinstance(value, dict) or isinstance(before, dict)):
            return None
        else:
            merged[key] = value
    return merged


def dump(value: Any) -> str:
    """Plain values as YAML, in the form that OmegaConf writes."""
    return str(
        yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False)
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str | bool) and _is_plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bool | int | float)


def _is_number(text: str) -> bool:
    """Whether Python reads it as a number: OmegaConf's own criterion."""
    try:
        float(text)  # reads whatever int() reads
    except ValueError:
        return False
    return True
