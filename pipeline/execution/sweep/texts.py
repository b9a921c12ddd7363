"""YAML as OmegaConf writes it. In: mappings of plain values. Out: their texts, each shared part made once.

A thousand jobs have a thousand configurations that differ in a number or two. What they share is the same
object, whose text is kept; what is plainly a name or a number is put down as it is. PyYAML does the rest.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml
from omegaconf._utils import get_omega_conf_dumper

from pipeline.plan.config.values import Plain

_NAME = re.compile(r"(?:\+{0,2}[A-Za-z_]|/)[A-Za-z0-9_./=,+-]{0,999}")
"""Strings that need no quotes and that no line ends in, unless they are one of these:"""
_WORDS = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null", "inf", "infinity", "nan"))
_DIGITS = re.compile(r"[0-9]{1,18}")
_LONGEST_KEY = 100  # beyond 128 characters a key has another form


class _Dumper(yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper):  # type: ignore[misc]
    """As OmegaConf's, which quotes what its loader would take for a number, ten times as fast."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (the signature is PyYAML's)
        """Jobs share parts of their configurations; each file stands for itself."""
        return True


_Dumper.add_representer(str, get_omega_conf_dumper().str_representer)


class Texts:
    """Makes texts, and keeps those of what may come again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Any, str]] = {}

    def mapping(self, items: Iterable[tuple[Any, Any]], depth: int = 0) -> str:
        """The lines of a mapping below so many others."""
        return "".join([self._entry(key, value, depth) for key, value in items])

    def _entry(self, key: Any, value: Any, depth: int) -> str:
        if not isinstance(key, str) or len(key) > _LONGEST_KEY or not _is_name(key):
            return _below(depth, {key: value})
        simple = _scalar(value)
        if simple is not None:
            return f"{'  ' * depth}{key}: {simple}\n"
        # Nothing is changed in place: an object stands for its content; kept, its identity stays its own.
        known = (key, depth, value if isinstance(value, str) else id(value))
        if known not in self._kept:
            self._kept[known] = (value, self._made(key, value, depth))
        return self._kept[known][1]

    def _made(self, key: str, value: Any, depth: int) -> str:
        if isinstance(value, dict) and value:
            return f"{'  ' * depth}{key}:\n{self.mapping(value.items(), depth + 1)}"
        return _below(depth, {key: value})


def list_text(values: Sequence[str], depth: int = 0) -> str:
    """The lines of a list of strings at the place of a mapping below so many others."""
    simple = [_scalar(each) for each in values]
    if not simple or None in simple:
        return _dump(values) if depth == 0 else _below(depth, {"_": list(values)}).partition("\n")[2]
    return "".join([f"{'  ' * depth}- {each}\n" for each in simple])


def _scalar(value: Any) -> str | None:
    """What needs no thought; None where PyYAML is to be asked."""
    if isinstance(value, str):
        if _is_name(value):
            return value
        return f"'{value}'" if _DIGITS.fullmatch(value) else None
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value) if isinstance(value, int) else None


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text.lstrip("+").lower() not in _WORDS


def _below(depth: int, value: Plain) -> str:
    """The lines of a mapping where they stand below other keys."""
    for _ in range(depth):
        value = {"_": value}
    return "".join(_dump(value).splitlines(keepends=True)[depth:])


def _dump(value: Any) -> str:
    return str(
        yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False)
    )
