"""Load the chosen options: conf/ and overrides in, checked records out, or one line with the mistake."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeline.plan.config.compose import Composer, composer
from pipeline.plan.config.groups import AXES, SETTINGS, check_option, option_file, options, schema_of
from pipeline.plan.config.option_rules import (
    check,
    check_dimensions_given,
    check_dimensions_read,
    check_optimization,
    dimensions_given,
    dimensions_read,
)
from pipeline.plan.config.overrides import Overrides
from pipeline.plan.config.plain_options import parent_of
from pipeline.plan.config.schema import to_record
from pipeline.records.configuration.experiment import Experiment
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.search_settings import Search
from pipeline.records.configuration.stage_settings import Profile, Tracking, Verify
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, hint
from pipeline.records.planning.planned_tasks import Objective
from pipeline.records.record import Record, digest
from pipeline.records.results.mutated import Mutation
from pipeline.search.strategy_registry import members, strategy, strategy_names

R = TypeVar("R", bound=Record)
_Known = dict[tuple[object, ...], Record]


class ExperimentSettings(Record, frozen=True, kw_only=True):
    """The experiment and how its tasks are searched, judged, measured and logged."""

    experiment: Experiment
    search: Search
    verify: Verify
    mutation: Mutation
    profile: Profile
    tracking: Tracking
    objective: Objective


def to_search(plain: Any, where: str) -> Search:
    """A Search with the settings of its strategy and of the one that it wraps, which the yaml has by name.

    Raises
    ------
    ConfigError
        As `to_record`.
    """
    if not isinstance(plain, dict):
        return to_record(plain, Search, where)
    chosen = plain.get("strategy")
    if isinstance(chosen, str) and chosen not in strategy_names():
        raise ConfigError(f"{where}: strategy: unknown name '{chosen}'{hint(chosen, strategy_names())}")
    schema = schema_of("search", plain)
    names = schema.__struct_fields__
    complete = {**plain, chosen: {}} if chosen in names and plain.get(chosen) is None else plain
    found = to_record(complete, schema, where)
    common = {name: getattr(found, name) for name in names if name in Search.__struct_fields__}
    own = {name: each for name in names if name not in common and (each := getattr(found, name)) is not None}
    settings = {name: msgspec.to_builtins(each) for name, each in own.items()}
    return _with_defaults(Search(**common, settings=settings), where)


def _with_defaults(search: Search, where: str) -> Search:
    """With the settings of the strategy that it wraps, so that they are part of the search's identity."""
    settings = dict(search.settings)
    for name in members(search)[1:]:
        if name not in strategy_names():
            known = hint(name, strategy_names())
            raise ConfigError(f"{where}: {search.strategy}: unknown strategy '{name}'{known}")
        wrapped = strategy(name)
        if wrapped.settings is not None and wrapped.may_be_wrapped and name not in settings:
            settings[name] = msgspec.to_builtins(to_record({}, wrapped.settings, f"{where}: {name}"))
    return msgspec.structs.replace(search, settings=settings)


class OptionLoader:
    """Loads options; each distinct one is composed and checked once, for all jobs of a sweep."""

    def __init__(
        self, composer: Composer, overrides: Overrides, root: Path, known: _Known | None = None
    ) -> None:
        self._composer = composer
        self._overrides = overrides
        self._root = root
        self._conf = composer.conf
        self._known: _Known = {} if known is None else known

    def of(self, overrides: Overrides) -> "OptionLoader":
        """The same options as other overrides change them."""
        return OptionLoader(self._composer, overrides, self._root, self._known)

    def settings(self) -> ExperimentSettings:
        """The experiment and its settings, checked; names in its grids exist."""
        chosen = self._composer.settings(self._overrides)
        names = {group: str(name) for group, name in chosen.choices.items()}
        file = option_file(self._conf, "experiment", names["experiment"])
        within = chosen.plain.get("experiment")
        if isinstance(within, dict) and "experiment" in within:
            raise ConfigError(f"{file}: expected as its first line: # @package _global_")
        for key in chosen.plain:
            if key not in SETTINGS:
                where = f"{file}, {self._conf.name}/config.yaml"
                raise ConfigError(f"{where}: unknown key '{key}'{hint(str(key), SETTINGS)}")
        records: dict[str, Record] = {}
        for group, kind in SETTINGS.items():
            place = ("settings", group, chosen.lines, self._overrides.values.get(group, ()))
            if chosen.changed_by_others or place not in self._known:
                self._known[place] = self._setting(chosen.plain.get(group), group, names, kind)
                if group == "experiment":
                    self._check_names(self._known[place], file)
            records[group] = self._known[place]
        return ExperimentSettings(**records)  # type: ignore[arg-type]

    def _setting(self, plain: Any, group: str, names: Mapping[str, str], kind: type[R]) -> R:
        """One group of settings; where its option is right by itself, the experiment's file is wrong."""
        where, name = self._where(group, names[group]), names[group]
        try:
            return self._checked(plain, (group, name), kind, where)
        except ConfigError:
            if group != "experiment" and not self._overrides.values.get(group):
                self._checked(self._composer.option(group, name), (group, name), kind, where)
                where = f"{option_file(self._conf, 'experiment', names['experiment'])}: {group}"
                self._checked(plain, (group, name), kind, where)
            raise

    def kernels(self, names: Iterable[str]) -> dict[str, Kernel]:
        """The chosen kernels."""
        return self._axis("kernel", names, Kernel)

    def workloads(self, names: Iterable[str]) -> dict[str, Workload]:
        """The chosen workloads."""
        return self._axis("workload", names, Workload)

    def hardware(self, names: Iterable[str]) -> dict[str, Hardware]:
        """The chosen hardware targets, as declared."""
        return self._axis("hardware", names, Hardware)

    def all_hardware(self) -> dict[str, Hardware]:
        """Every hardware target that is declared, without overrides."""
        return self._declared("hardware", Hardware)

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel that is declared, without overrides."""
        return self._declared("kernel", Kernel)

    def optimizations(self, names: Iterable[str], kernels: Collection[Kernel]) -> dict[str, Optimization]:
        """The chosen optimizations; what they name exists in a chosen kernel, or at least in some kernel."""
        found = self._axis("optimization", names, Optimization)
        for name, optimization in found.items():
            # All options are kept, so identities stay theirs.
            place: tuple[object, ...] = ("fits", id(optimization), *map(id, kernels))
            if place not in self._known:
                self._check_fit(optimization, kernels, self._where("optimization", name))
                self._known[place] = optimization
        return found

    def check_dimensions(self, kernels: Mapping[str, Kernel], workloads: Mapping[str, Workload]) -> None:
        """See that names of dimensions which do not meet among these options meet others of the project.

        Raises
        ------
        ConfigError
            A kernel reads what no workload has, or a workload has what no kernel reads and no other has.
        """
        read, given = dimensions_read(kernels.values()), dimensions_given(workloads.values())
        if read == given:
            return
        with self._readable("workload", Workload) as every:
            known = given | dimensions_given(every.values())
            for name, kernel in kernels.items():
                check_dimensions_read(kernel, known, self._where("kernel", name))
        for name, workload in workloads.items():
            others = (each for other, each in every.items() if other != name)
            if unread := workload.dimensions.keys() - read - dimensions_given(others):
                with self._readable("kernel", Kernel) as readable:
                    used = read | dimensions_read(readable.values())
                    check_dimensions_given(unread, used, self._where("workload", name))

    def _check_fit(self, optimization: Optimization, kernels: Collection[Kernel], where: str) -> None:
        """Kernels of which a value is set are many, with the same implementations."""
        place = ("fits alike", id(optimization), *(digest(kernel.implementations) for kernel in kernels))
        if place not in self._known:
            self._check_optimization(optimization, kernels, where)
            self._known[place] = optimization

    def _check_optimization(
        self, optimization: Optimization, kernels: Collection[Kernel], where: str
    ) -> None:
        try:
            check_optimization(optimization, kernels, where)
        except ConfigError:
            with self._readable("kernel", Kernel) as every:
                check_optimization(optimization, [*every.values(), *kernels], where)

    def presets(self, names: Iterable[str], where: str) -> dict[str, Verify]:
        """Presets of verify by name, without overrides; `where` says who names them."""
        wanted = tuple(names)
        for name in wanted:
            if ("verify", name, ()) not in self._known:
                check_option(self._conf, "verify", name, where)
        return self._records("verify", wanted, (), Verify)

    def preset(self, group: str, name: str, kind: type[R]) -> R:
        """One option as its file has it, without overrides."""
        return self._records(group, (name,), (), kind)[name]

    def _declared(self, group: str, kind: type[R]) -> dict[str, R]:
        """All options of an axis, without overrides."""
        names = options(self._conf, group)
        self._composer.prepare({group: names})
        return self._records(group, names, (), kind)

    @contextlib.contextmanager
    def _readable(self, group: str, kind: type[R]) -> Iterator[dict[str, R]]:
        """The options of an axis without those that are wrong: nobody chose them.

        If what is checked with the others fails, the first of those errors is raised in its place.
        """
        wrong: ConfigError | None = None
        try:
            found = self._declared(group, kind)
        except ConfigError as error:
            found, wrong = self._right_ones(group, kind), error
        try:
            yield found
        except ConfigError as missed:
            raise wrong or missed from None

    def _right_ones(self, group: str, kind: type[R]) -> dict[str, R]:
        found: dict[str, R] = {}
        for name in options(self._conf, group):
            with contextlib.suppress(ConfigError):
                found |= self._records(group, (name,), (), kind)
        return found

    def _axis(self, group: str, names: Iterable[str], kind: type[R]) -> dict[str, R]:
        return self._records(group, tuple(dict.fromkeys(names)), self._overrides.values.get(group, ()), kind)

    def _records(
        self, group: str, names: tuple[str, ...], values: tuple[str, ...], kind: type[R]
    ) -> dict[str, R]:
        found: dict[str, R] = {}
        for name, option in self._composer.chosen(group, names, values).items():
            key = (group, name, option.lines)
            if key not in self._known:
                narrowed = any(".values" in line for line in values)
                where = self._where(group, name)
                self._known[key] = self._checked(option.plain, (group, name), kind, where, narrowed=narrowed)
            record = self._known[key]
            assert isinstance(record, kind)
            found[name] = record
        return found

    def _checked(
        self, plain: Any, option: tuple[str, str], kind: type[R], where: str, *, narrowed: bool = False
    ) -> R:
        """The record of an option, given by group and name."""
        try:
            record = to_record(plain, kind, where) if kind is not Search else to_search(plain, where)
            assert isinstance(record, kind)
            check(record, option[1], where, self._root, narrowed=narrowed)
        except ConfigError as error:
            raise self._where_it_stands(error, option, kind) from None
        return record

    def _where_it_stands(self, error: ConfigError, option: tuple[str, str], kind: type[R]) -> ConfigError:
        """The error for the file that has the mistake: it may be one from which this option inherits."""
        group, name = option
        parent = parent_of(self._conf, group, name)
        if parent is not None:
            try:
                plain = self._composer.option(group, parent)
                self._checked(plain, (group, parent), kind, option_file(self._conf, group, parent))
            except ConfigError as inherited:
                if str(inherited).partition(": ")[2] == str(error).partition(": ")[2]:
                    return inherited
        return error

    def _check_names(self, experiment: Record, file: str) -> None:
        """The names in an experiment's grids exist."""
        assert isinstance(experiment, Experiment)
        for number, grid in enumerate(experiment.select):
            for axis in AXES:
                for name in getattr(grid, axis):
                    check_option(self._conf, axis, name, f"{file}: select[{number}].{axis}")

    def _where(self, group: str, name: str) -> str:
        lines = self._overrides.values.get(group, ())
        changed = f" (with {' '.join(lines)})" if lines else ""
        return option_file(self._conf, group, name) + changed


def declared_kernels(conf: Path) -> dict[str, Kernel]:
    """Every kernel, with origin and licence of its implementations.

    Raises
    ------
    ConfigError
        A yaml is wrong.
    """
    with composer(conf) as hydra:
        return OptionLoader(hydra, hydra.reader.read(()), conf.parent).all_kernels()


def declared_hardware(conf: Path) -> dict[str, Hardware]:
    """Every hardware target; raises as `declared_kernels`."""
    with composer(conf) as hydra:
        return OptionLoader(hydra, Overrides(choices={}, values={}), conf.parent).all_hardware()
