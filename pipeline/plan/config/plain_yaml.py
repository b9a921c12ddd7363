"""Options that are written out: a yaml that inherits and interpolates nothing in, what Hydra makes of it out.

Hydra takes some 15 ms for an option, to find out that there is nothing to compose. Here libyaml reads the
file by the rules of OmegaConf's loader; what is not plainly a mapping of plain values is left to Hydra, as is
everything that is wrong, for Hydra says what.
"""

from pathlib import Path
from typing import Any

import yaml
from hydra.core.config_store import ConfigStore
from omegaconf._utils import get_yaml_loader

from pipeline.plan.config.values import Plain

_COMPOSED = ("${", "@package")
"""Texts that mean something to Hydra or OmegaConf."""
_HYDRAS = ("defaults", "hydra")
"""Keys that do."""


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """OmegaConf's: what looks like a time is a string, 1e3 is a number, and no key stands twice."""

    yaml_implicit_resolvers = get_yaml_loader().yaml_implicit_resolvers

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """Raises where a key stands twice."""
        keys = [
            key.value for key, _ in node.value if key.tag == yaml.resolver.BaseResolver.DEFAULT_SCALAR_TAG
        ]
        if len(set(keys)) < len(keys):
            raise yaml.YAMLError("a key stands twice")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def read_literal(conf: Path, group: str, name: str) -> Plain | None:
    """The option, not to be changed; None where only Hydra can say what it is."""
    if group in ConfigStore.instance().repo:  # a plugin's: it may stand in front
        return None
    try:
        text = (conf / group / f"{name}.yaml").read_text(encoding="utf-8")
        found = None if any(each in text for each in _COMPOSED) else yaml.load(text, Loader=_Loader)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError):
        return None
    if not isinstance(found, dict) or any(key in found for key in _HYDRAS) or not _is_plain(found):
        return None
    return found


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str | bool) and _is_plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bool | int | float)
