"""Compose options with Hydra, each distinct one once. In: names and overrides. Out: plain dicts.

A grid is formed in Python from options that are composed once: composing each cell would cost tens of
milliseconds. All options are composed together, each as a package of its own; one that is overridden or wrong
is composed alone, as its own primary configuration. `defaults` (inheritance) work in both.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.config.groups import AXES, check_option, option_file
from pipeline.config.overrides import Overrides
from pipeline.config.values import Plain, split_by_option
from pipeline.errors import ConfigError

PRIMARY = "config"
HYDRA_VERSION = "1.3"  # whose defaults we rely on


@contextlib.contextmanager
def composer(conf: Path) -> Iterator["Composer"]:
    """Hydra, initialised for a configuration folder."""
    with initialize_config_dir(version_base=HYDRA_VERSION, config_dir=str(conf.absolute())):
        yield Composer(conf)


class Composer:
    """Composes options of one configuration folder."""

    def __init__(self, conf: Path) -> None:
        self.conf = conf
        self._prepared: dict[tuple[str, str], Plain] = {}

    def settings(self, overrides: Overrides) -> tuple[Plain, dict[str, str]]:
        """The experiment with its settings, and which option of each group was chosen.

        Raises
        ------
        ConfigError
            An unknown option, a value that cannot be set, or a yaml that cannot be read.
        """
        lines = [f"{group}={names[0]}" for group, names in overrides.choices.items() if group not in AXES]
        plain, choices = self._primary(lines)
        values = {group: each for group, each in overrides.values.items() if group not in AXES}
        for group, each in values.items():
            lines += split_by_option(each, group, {group: plain.get(group) or {}})[group]
        return self._primary(lines) if values else (plain, choices)

    def _primary(self, lines: list[str]) -> tuple[Plain, dict[str, str]]:
        where = f"{self.conf.name}/{PRIMARY}.yaml"
        config = _compose(PRIMARY, lines, where, with_hydra=True)
        choices = {group: str(name) for group, name in config.hydra.runtime.choices.items()}
        ours = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        return _plain(ours, where), choices

    def option(self, group: str, name: str, overrides: tuple[str, ...] = ()) -> Plain:
        """One option of an axis with the overrides that apply to it."""
        where = option_file(self.conf, group, name)
        config = _compose(f"{group}/{name}", overrides, where)
        if set(config) - {group}:
            extra = sorted(str(key) for key in set(config) - {group})
            raise ConfigError(f"{where}: sets keys outside of its group: {', '.join(extra)}")
        return dict(_plain(config, where).get(group) or {})

    def prepare(self, wanted: Mapping[str, Iterable[str]]) -> None:
        """Compose options of several groups at once, at a third of the cost; errors wait for `option`."""
        pairs = dict.fromkeys((group, name) for group, names in wanted.items() for name in names)
        packages = {pair: f"option{number}" for number, pair in enumerate(pairs)}
        lines = [f"+{group}@{package}='{name}'" for (group, name), package in packages.items()]
        with contextlib.suppress(ConfigError):
            plain = _plain(_compose(None, lines, ""), "")
            if set(plain) == set(packages.values()):
                self._prepared |= {pair: dict(plain[package] or {}) for pair, package in packages.items()}

    def chosen(self, group: str, names: tuple[str, ...], values: tuple[str, ...]) -> dict[str, Plain]:
        """All chosen options of an axis; a value override applies to each that has the key.

        Raises
        ------
        ConfigError
            An unknown option, or an override of a key that no chosen option has.
        """
        for name in names:
            check_option(self.conf, group, name, f"{group}={name}")
        plain = {name: self._prepared.get((group, name)) or self.option(group, name) for name in names}
        return {
            name: self.option(group, name, lines) if lines else plain[name]
            for name, lines in split_by_option(values, group, plain).items()
        }


def _compose(name: str | None, overrides: Any, where: str, *, with_hydra: bool = False) -> DictConfig:
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
