"""Compose options with Hydra, each distinct one once. In: names and overrides. Out: plain dicts.

A grid of N cells is formed in Python from options composed one by one: composing each cell costs tens of
milliseconds. An option is its own primary configuration, so its `defaults` (inheritance) work as everywhere.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.config.groups import AXES, check_option, hint, option_file
from pipeline.config.overrides import Overrides
from pipeline.errors import ConfigError

PRIMARY = "config"
HYDRA_VERSION = "1.3"  # whose defaults we rely on

Plain = dict[str, Any]


@contextlib.contextmanager
def composer(conf: Path) -> Iterator["Composer"]:
    """Hydra, initialised for a configuration folder."""
    with initialize_config_dir(version_base=HYDRA_VERSION, config_dir=str(conf.absolute())):
        yield Composer(conf)


class Composer:
    """Composes options of one configuration folder."""

    def __init__(self, conf: Path) -> None:
        self.conf = conf

    def settings(self, overrides: Overrides) -> tuple[Plain, dict[str, str]]:
        """The experiment with its settings, and which option of each group was chosen.

        Raises
        ------
        ConfigError
            An unknown option, a value that cannot be set, or a yaml that cannot be read.
        """
        lines = [f"{group}={names[0]}" for group, names in overrides.choices.items() if group not in AXES] + [
            line for group, lines in overrides.values.items() if group not in AXES for line in lines
        ]
        where = f"{self.conf.name}/{PRIMARY}.yaml"
        config = _compose(PRIMARY, lines, where, with_hydra=True)
        choices = {group: str(name) for group, name in config.hydra.runtime.choices.items()}
        plain = _plain(OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]), where)
        return plain, choices

    def option(self, group: str, name: str, overrides: tuple[str, ...] = ()) -> Plain:
        """One option of an axis with the overrides that apply to it."""
        where = option_file(self.conf, group, name)
        config = _compose(f"{group}/{name}", overrides, where)
        if set(config) - {group}:
            extra = sorted(str(key) for key in set(config) - {group})
            raise ConfigError(f"{where}: sets keys outside of its group: {', '.join(extra)}")
        return dict(_plain(config, where).get(group) or {})

    def chosen(self, group: str, names: tuple[str, ...], values: tuple[str, ...]) -> dict[str, Plain]:
        """All chosen options of an axis; a value override applies to each that has the key.

        Raises
        ------
        ConfigError
            An unknown option, or an override of a key that no chosen option has.
        """
        for name in names:
            check_option(self.conf, group, name, f"{group}={name}")
        plain = {name: self.option(group, name) for name in names}
        applied: dict[str, list[str]] = {name: [] for name in names}
        for line in values:
            takers = [name for name in names if _applies(line, {group: plain[name]})]
            if not takers and names:
                raise ConfigError(_no_taker(line, [{group: plain[name]} for name in names]))
            for name in takers:
                applied[name].append(line)
        return {
            name: self.option(group, name, tuple(lines)) if lines else plain[name]
            for name, lines in applied.items()
        }


def _compose(name: str, overrides: Any, where: str, *, with_hydra: bool = False) -> DictConfig:
    """Hydra's compose with its errors in one line."""
    try:
        return compose(name, overrides=list(overrides), return_hydra_config=with_hydra)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise ConfigError(f"{where}: {place}: not YAML: {error.problem or error.context}") from None
    except (HydraException, OmegaConfBaseException, OSError, ValueError) as error:
        raise ConfigError(f"{where}: {_one_line(error)}") from None


def _plain(config: DictConfig, where: str) -> Plain:
    """Interpolations resolved, everything plain; missing values stay marked."""
    try:
        plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=False)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{where}: {_one_line(error)}") from None
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def _one_line(error: BaseException) -> str:
    """Hydra's texts, without their hints about its search path and its environment variable."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Config search path", "provider=", "full_key:"))]
    cause = error.__cause__
    if cause is not None and isinstance(cause, OmegaConfBaseException):
        kept.append(f"({str(cause).splitlines()[0]})")
    return " ".join(kept)


def _applies(line: str, plain: Plain) -> bool:
    override: Override = OverridesParser.create().parse_override(line)
    if override.type in (OverrideType.ADD, OverrideType.FORCE_ADD):
        return True
    return _first_unknown(override.key_or_group, plain) is None


def _first_unknown(key: str, plain: Plain) -> tuple[str, str, list[str]] | None:
    """(path so far, the part that is not there, the parts that are), or None where the key exists."""
    value: Any = plain
    path: list[str] = []
    for part in key.split("."):
        known = [str(name) for name in value] if isinstance(value, dict) else []
        if isinstance(value, list):
            known = [str(number) for number in range(len(value))]
        if part not in known:
            return ".".join(path), part, known
        value = value[int(part)] if isinstance(value, list) else value[part]
        path.append(part)
    return None


def _no_taker(line: str, plains: list[Plain]) -> str:
    """What to say of a key that no chosen option has: the option that has most of its path is the example."""
    override: Override = OverridesParser.create().parse_override(line)
    unknowns = [unknown for plain in plains if (unknown := _first_unknown(override.key_or_group, plain))]
    path, part, known = max(unknowns, key=lambda unknown: unknown[0].count("."))
    return f"{line}: no chosen {path.partition('.')[0]} has '{part}' in {path} {hint(part, known)}"
