"""Hydra's grammar. In: one override as text. Out: what it says; each distinct text is read once."""

import functools

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from pipeline.errors import ConfigError


@functools.lru_cache(maxsize=1 << 16)  # reading costs half a millisecond, and a sweep says the same often
def read_override(line: str) -> Override:
    """One override, which nobody may change.

    Raises
    ------
    ConfigError
        Not in the grammar.
    """
    try:
        return OverridesParser.create().parse_override(line)
    except HydraException:
        expected = "group=option, group=option,option or group.key=value"
        raise ConfigError(f"{line}: not an override (expected {expected})") from None
