"""Compose options with Hydra, each distinct one once: names and overrides in, plain dicts out.

A grid is formed in Python from options that are composed once: composing each cell would cost tens of
milliseconds. An option without interpolation, which inherits at most from another one, is read without Hydra.
All others are composed together, each as a package of its own. An option with an error is composed alone, as
its own primary configuration, and so is one with overrides that only Hydra understands; other values are set
on a copy.
`job_configs` gives each job of a sweep the configuration that Hydra would compose for it.
"""

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.utils import JobRuntime
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.plan.config.groups import AXES, check_option, check_project, option_file
from pipeline.plan.config.overrides import Overrides, Reader
from pipeline.plan.config.plain_options import Plain, applicable, read_literal, split_by_option, with_values
from pipeline.records.errors import ConfigError, hint
from pipeline.records.record import Record

PRIMARY = "config"
HYDRA_VERSION = "1.3"  # whose defaults we rely on
NOT_THERE = re.compile(r"Could not override '([^']*)'.*\(Key '([^']*)' is not in struct\)")
MISTAKES = (HydraException, OmegaConfBaseException, yaml.MarkedYAMLError)
"""What Hydra raises where a user got something wrong."""


class Option(Record, frozen=True, kw_only=True):
    """One option, composed."""

    plain: Plain
    """Not to be changed: others have the same."""
    lines: tuple[str, ...]
    """The overrides in it."""


class ChosenSettings(Record, frozen=True, kw_only=True):
    """The experiment with its settings, composed."""

    plain: Plain
    """By group; not to be changed."""
    choices: Plain
    """Group -> chosen option, of our groups and of Hydra's; None where none is chosen."""
    lines: tuple[str, ...]
    """The choices that were asked for."""
    changed_by_others: bool
    """Whether an override of one group may have changed another one, which interpolates it."""


class Composed(Record, frozen=True, kw_only=True):
    """What Hydra made of a configuration."""

    plain: Plain
    literal: frozenset[str]
    """Top-level keys below which nothing was interpolated: values may be set there without Hydra."""

    @property
    def all_literal(self) -> bool:
        """Whether that is so everywhere."""
        return len(self.literal) == len(self.plain)


class Compositions:
    """What was composed of one configuration folder: kept for who composes of it again."""

    def __init__(self) -> None:
        self.options: dict[tuple[str, str], Composed] = {}
        self.changed: dict[tuple[str, str, tuple[str, ...]], Plain] = {}
        self.primaries: dict[tuple[str, ...], tuple[Composed, Plain]] = {}


@contextlib.contextmanager
def composer(conf: Path, known: Compositions | None = None) -> Iterator["Composer"]:
    """Hydra, initialised for a configuration folder; what was initialised before is so again afterwards."""
    if not conf.is_dir():
        check_project(conf.parent)
    runtime = JobRuntime.instance()
    before, name = GlobalHydra.instance().hydra, runtime.get("name")
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base=HYDRA_VERSION, config_dir=str(conf.absolute())):
            yield Composer(conf, known or Compositions())
    finally:
        GlobalHydra.instance().hydra = before
        runtime.set("name", name)


class Composer:
    """Composes options of one configuration folder."""

    def __init__(self, conf: Path, known: Compositions) -> None:
        self.conf = conf
        self.reader = Reader(conf)
        self._options, self._changed, self._primaries = known.options, known.changed, known.primaries
        self._check = functools.cache(lambda group, name: check_option(conf, group, name, f"{group}={name}"))

    def settings(self, overrides: Overrides) -> ChosenSettings:
        """The experiment with its settings.

        Raises
        ------
        ConfigError
            An unknown option, a value that cannot be set, or a yaml that cannot be read.
        """
        lines = tuple(
            f"{group}={names[0]}" for group, names in overrides.choices.items() if group not in AXES
        )
        composed, choices = self._primary(lines)
        values = {
            group: split_by_option(each, group, {group: composed.plain.get(group) or {}})[group]
            for group, each in overrides.values.items()
            if group not in AXES
        }
        plain = dict(composed.plain)
        for group, each in values.items():
            # A group may be interpolated in another one: then only Hydra knows what else changes.
            changed = with_values(plain[group], group, each) if composed.all_literal else None
            if changed is None:
                wanted = (*lines, *(line for several in values.values() for line in several))
                plain = dict(self._primary(wanted)[0].plain)
                break
            plain[group] = changed
        return ChosenSettings(
            plain=plain, choices=choices, lines=lines, changed_by_others=not composed.all_literal
        )

    def _primary(self, lines: tuple[str, ...]) -> tuple[Composed, Plain]:
        if lines not in self._primaries:
            where = f"{self.conf.name}/{PRIMARY}.yaml"
            config = compose_config(self.conf, PRIMARY, lines, where, with_hydra=True)
            choices = dict(config.hydra.runtime.choices)
            ours = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
            self._primaries[lines] = _plain(ours, where), choices
        return self._primaries[lines]

    def option(self, group: str, name: str, lines: tuple[str, ...] = ()) -> Plain:
        """One option of an axis with the overrides that apply to it; not to be changed."""
        key = (group, name, lines)
        if key not in self._changed:
            self._changed[key] = self._with(group, name, lines)
        return self._changed[key]

    def _with(self, group: str, name: str, lines: tuple[str, ...]) -> Plain:
        if (group, name) not in self._options:
            self._options[group, name] = self._literal(group, name) or self.compose_alone(group, name, ())
        base = self._options[group, name]
        plain: Plain = base.plain.get(group) or {}
        changed = with_values(plain, group, lines) if not lines or group in base.literal else None
        return self.compose_alone(group, name, lines).plain.get(group) or {} if changed is None else changed

    def _literal(self, group: str, name: str) -> Composed | None:
        plain = read_literal(self.conf, group, name)
        return None if plain is None else Composed(plain={group: plain}, literal=frozenset({group}))

    def compose_alone(self, group: str, name: str, lines: tuple[str, ...]) -> Composed:
        """One option by Hydra alone, as its own primary configuration."""
        where = option_file(self.conf, group, name)
        config = compose_config(self.conf, f"{group}/{name}", lines, where)
        if set(config) - {group}:
            extra = sorted(str(key) for key in set(config) - {group})
            raise ConfigError(f"{where}: sets keys outside of its group: {', '.join(extra)}")
        return _plain(config, where)

    def prepare(self, wanted: Mapping[str, Iterable[str]]) -> None:
        """Compose options of several groups at once, at a third of the cost; errors wait for `option`."""
        pairs = dict.fromkeys((group, name) for group, names in wanted.items() for name in names)
        pairs = {pair: None for pair in pairs if pair not in self._options}
        for pair in list(pairs):
            written = self._literal(*pair)
            if written is not None:
                self._options[pair] = written
                del pairs[pair]
        if not pairs:
            return
        packages = {pair: f"option{number}" for number, pair in enumerate(pairs)}
        lines = [f"+{group}@{package}='{name}'" for (group, name), package in packages.items()]
        with contextlib.suppress(ConfigError):
            composed = _plain(compose_config(self.conf, None, lines, ""), "")
            if set(composed.plain) == set(packages.values()):
                for (group, name), package in packages.items():
                    literal = frozenset({group} if package in composed.literal else ())
                    plain = {group: composed.plain[package]}
                    self._options[group, name] = Composed(plain=plain, literal=literal)

    def chosen(self, group: str, names: tuple[str, ...], values: tuple[str, ...]) -> dict[str, Option]:
        """All chosen options of an axis; a value override applies to each that has the key.

        Raises
        ------
        ConfigError
            An unknown option, or an override of a key that no chosen option has.
        """
        for name in names:
            self._check(group, name)
        plain = {name: self.option(group, name) for name in names}
        applied = split_by_option(values, group, plain)
        return {
            name: Option(plain=self.option(group, name, lines), lines=lines)
            for name, lines in applied.items()
        }


def compose_config(
    conf: Path, name: str | None, overrides: Any, where: str, *, with_hydra: bool = False
) -> DictConfig:
    """Hydra's compose with its errors in one line; `conf` is the folder it was initialised with."""
    try:
        return compose(name, overrides=list(overrides), return_hydra_config=with_hydra)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{where}: {_not_yaml(error)}") from None
    except MissingConfigException as error:
        raise ConfigError(_unknown_option(error, conf, where)) from None
    except (HydraException, OmegaConfBaseException, OSError, ValueError) as error:
        raise ConfigError(f"{where}: {one_line(error)}") from None


def _unknown_option(error: MissingConfigException, conf: Path, where: str) -> str:
    """A defaults list names an option that does not exist: which list, if one in conf/ has these words."""
    group, _, name = (error.missing_cfg_file or "").rpartition("/")
    if not name or error.options is None:
        return f"{where}: {one_line(error)}"
    words = re.compile(rf"^\s*-.*\b{re.escape(group)}(@\S+)?:\s*{re.escape(name)}\s*(#.*)?$", re.MULTILINE)
    files = [path for path in sorted(conf.rglob("*.yaml")) if words.search(path.read_text())]
    named = files[0].relative_to(conf.parent).as_posix() if files else where
    known = hint(name, error.options, folder=f"{conf.name}/{group}")
    return f"{named}: defaults: unknown {group} '{name}'{known}"


def _not_yaml(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
    return f"{place}: not YAML: {error.problem or error.context}"


def _plain(config: DictConfig, where: str) -> Composed:
    """Interpolations resolved, everything plain; missing values stay marked."""
    try:
        plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=False)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{where}: {one_line(error)}") from None
    written = OmegaConf.to_container(config, resolve=False)
    assert isinstance(plain, dict) and isinstance(written, dict)
    literal = frozenset(str(key) for key, value in plain.items() if value == written[key])
    return Composed(plain={str(key): value for key, value in plain.items()}, literal=literal)


def one_line(error: BaseException) -> str:
    """Hydra's texts, without their hints about its search path and its environment variable."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Config search path", "provider=", "full_key:"))]
    cause = error.__cause__
    if cause is not None and isinstance(cause, OmegaConfBaseException):
        kept.append(f"({str(cause).splitlines()[0]})")
    text = " ".join(kept)
    # To add the key, as Hydra advises, would not help: there is no such one.
    unknown = NOT_THERE.match(text)
    return f"there is no '{unknown[2]}' in {unknown[1].removesuffix(f'.{unknown[2]}')}" if unknown else text


def error_line(error: Exception) -> str:
    """One of the MISTAKES, or an error of ours that came through Hydra, in a line."""
    if isinstance(error, yaml.MarkedYAMLError):
        path = Path(error.problem_mark.name if error.problem_mark else "conf")
        here = Path.cwd()
        return f"{path.relative_to(here) if path.is_relative_to(here) else path}: {_not_yaml(error)}"
    return one_line(error).removeprefix("error: ")


class JobConfig(Record, frozen=True, kw_only=True):
    """One job's configuration."""

    plain: Plain
    """By group; not to be changed: jobs share its parts."""
    choices: Plain
    """Group -> chosen option, of our groups and of Hydra's; None where none is chosen."""


def job_configs(
    jobs: Sequence[tuple[str, ...]], conf: Path, known: Compositions | None = None
) -> list[JobConfig]:
    """In the order of the jobs, whose overrides were found right.

    Raises
    ------
    ConfigError
        An override is wrong.
    """
    with composer(conf, known) as hydra:
        wanted: dict[str, list[str]] = {axis: [] for axis in AXES}
        for lines in jobs:
            for axis, names in hydra.reader.read(lines).choices.items():
                if axis in wanted:
                    wanted[axis] += names
        hydra.prepare(wanted)
        return [_of(hydra, lines) for lines in jobs]


def _of(hydra: Composer, lines: tuple[str, ...]) -> JobConfig:
    overrides = hydra.reader.read(lines)
    settings = hydra.settings(overrides)
    plain, choices = dict(settings.plain), dict(settings.choices)
    for axis in AXES:
        for name in overrides.choices.get(axis, ()):
            option = hydra.option(axis, name)
            taken = tuple(
                changed
                for line in overrides.values.get(axis, ())
                if (changed := applicable(line, axis, option))
            )
            plain[axis] = hydra.option(axis, name, taken)
            choices[axis] = name
    return JobConfig(plain=plain, choices=choices)
