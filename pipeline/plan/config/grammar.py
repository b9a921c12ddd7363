"""Hydra's grammar. In: one override as text. Out: what it says; each distinct text is read once.

A sweep over a number says thousands of texts that differ in nothing else: Hydra reads one of them, and the
numbers are put into copies of it.
"""

import dataclasses
import functools
import re

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from pipeline.records.errors import ConfigError

# The grammar's INT and FLOAT without underscores and without what Python would refuse to convert.
_INT = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}(?:[eE][+-]?[0-9]{1,3})?")


@functools.lru_cache(maxsize=1 << 16)  # reading costs half a millisecond, and a sweep says the same often
def read_override(line: str) -> Override:
    """One override, which nobody may change.

    Raises
    ------
    ConfigError
        Not in the grammar.
    """
    key, equal, value = line.partition("=")  # a key holds none
    number = _number(value) if equal else None
    like = _with_a_number(key) if number is not None else None
    if like is not None:
        return dataclasses.replace(like, _value=number, input_line=line)
    try:
        return _read(line)
    except HydraException:
        expected = "group=option, group=option,option or group.key=value"
        raise ConfigError(f"{line}: not an override (expected {expected})") from None


def _number(text: str) -> int | float | None:
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else None


@functools.lru_cache(maxsize=1 << 12)
def _with_a_number(key: str) -> Override | None:
    """What `key=0` says; None where it says nothing."""
    try:
        return _read(f"{key}=0")
    except HydraException:
        return None


def _read(line: str) -> Override:
    return OverridesParser.create().parse_override(line)
