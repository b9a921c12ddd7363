"""Set values in options that are composed already: a plain option and overrides in, a changed copy out.

Composing an option anew with Hydra costs tens of milliseconds, which a sweep over a value would pay for each
of its jobs. What is set here is what Hydra would set; what is not that simple (an interpolation, a new key, a
mapping as value, a list's item) is left to Hydra.
"""

from collections.abc import Iterable
from typing import Any

from hydra.core.override_parser.types import OverrideType

from pipeline.plan.config.grammar import read_override
from pipeline.plan.config.values import Plain

INTERPOLATION = "${"


def with_values(plain: Plain, group: str, lines: Iterable[str]) -> Plain | None:
    """A copy with these values, in the order given; None where only Hydra can say what comes out.

    The lines are as `pipeline.plan.config.values.applicable` returns them; `plain` holds no interpolation.
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
