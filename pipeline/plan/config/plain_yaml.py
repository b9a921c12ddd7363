"""YAML in OmegaConf's dialect, with libyaml: options that need no Hydra in, plain mappings out; and back.

Composing an option with Hydra costs 15 ms, even if it inherits and interpolates nothing. Such a file is read
here with libyaml by the rules of OmegaConf's loader: `1e3` is a number, a timestamp is a string, a duplicate
key is an error. Everything else, including every mistake, is left to Hydra, which reports it.
"""

import re
from pathlib import Path
from typing import Any

import yaml
from hydra.core.config_store import ConfigStore

from pipeline.plan.config.values import Plain

_COMPOSED = ("${", "@package")
"""Texts that mean something to Hydra or OmegaConf."""
_HYDRAS = ("defaults", "hydra")
"""Keys that do."""
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
"""What OmegaConf reads as a float: YAML 1.2's scientific notation beside YAML 1.1's forms."""
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
    """The option, which nobody may change; None if only Hydra can compose it."""
    if group in ConfigStore.instance().repo:  # registered by a plugin, which may take precedence
        return None
    try:
        text = (conf / group / f"{name}.yaml").read_text(encoding="utf-8")
        found = None if any(each in text for each in _COMPOSED) else yaml.load(text, Loader=_Loader)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError):
        return None
    if not isinstance(found, dict) or any(key in found for key in _HYDRAS) or not _is_plain(found):
        return None
    return found


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
