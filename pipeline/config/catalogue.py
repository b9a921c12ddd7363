"""The chosen options. In: conf/ and overrides. Out: checked records, or one line that says what is wrong."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pipeline.config.compose import Composer
from pipeline.config.groups import AXES, SETTINGS, check_option, hint, option_file, options
from pipeline.config.meaning import check, check_optimization
from pipeline.config.overrides import Overrides
from pipeline.config.validate import to_record
from pipeline.errors import ConfigError
from pipeline.records.experiment import Experiment
from pipeline.records.hardware import Hardware
from pipeline.records.kernel import Kernel
from pipeline.records.mutated import Mutation
from pipeline.records.optimization import Optimization
from pipeline.records.record import Record
from pipeline.records.search import Search
from pipeline.records.settings import Profile, Tracking, Verify
from pipeline.records.workload import Workload

R = TypeVar("R", bound=Record)


class Settings(Record, frozen=True, kw_only=True):
    """The experiment and how its tasks are searched, judged, measured and logged."""

    experiment: Experiment
    search: Search
    verify: Verify
    mutation: Mutation
    profile: Profile
    tracking: Tracking


class Catalogue:
    """Loads options; each distinct one is composed and checked once."""

    def __init__(self, composer: Composer, overrides: Overrides, root: Path) -> None:
        self._composer = composer
        self._overrides = overrides
        self._root = root
        self._conf = composer.conf
        self._loaded: dict[tuple[str, str], Record] = {}

    def settings(self) -> Settings:
        """The experiment and its settings, checked; names in its grids exist."""
        plain, choices = self._composer.settings(self._overrides)
        file = option_file(self._conf, "experiment", choices["experiment"])
        for key in plain:
            if key not in SETTINGS:
                where = f"{file}, {self._conf.name}/config.yaml"
                raise ConfigError(f"{where}: unknown key '{key}' {hint(str(key), SETTINGS)}")
        records = {
            group: self._checked(plain.get(group), group, choices[group], kind)
            for group, kind in SETTINGS.items()
        }
        found = Settings(**records)  # type: ignore[arg-type]
        for number, grid in enumerate(found.experiment.select):
            for axis in AXES:
                for name in getattr(grid, axis):
                    check_option(self._conf, axis, name, f"{file}: select[{number}].{axis}")
        return found

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

    def optimizations(self, names: Iterable[str], kernels: Collection[Kernel]) -> dict[str, Optimization]:
        """The chosen optimizations; what they name exists in a chosen kernel, or at least in some kernel."""
        found = self._axis("optimization", names, Optimization)
        for name, optimization in found.items():
            where = self._where("optimization", name)
            try:
                check_optimization(optimization, kernels, where)
            except ConfigError:
                every = self._declared("kernel", Kernel)
                check_optimization(optimization, [*every.values(), *kernels], where)
        return found

    def presets(self, names: Iterable[str], where: str) -> dict[str, Verify]:
        """Presets of verify by name, without overrides; `where` says who names them."""
        wanted = tuple(names)
        for name in wanted:
            check_option(self._conf, "verify", name, where)
        plain = self._composer.chosen("verify", wanted, ())
        return {name: self._checked(plain[name], "verify", name, Verify) for name in wanted}

    def _declared(self, group: str, kind: type[R]) -> dict[str, R]:
        """All options of an axis, without overrides."""
        plain = self._composer.chosen(group, options(self._conf, group), ())
        return {name: self._checked(each, group, name, kind) for name, each in plain.items()}

    def _axis(self, group: str, names: Iterable[str], kind: type[R]) -> dict[str, R]:
        wanted = tuple(dict.fromkeys(names))
        values = self._overrides.values.get(group, ())
        plain = self._composer.chosen(group, wanted, values)
        return {name: self._checked(plain[name], group, name, kind) for name in wanted}

    def _checked(self, plain: Any, group: str, name: str, kind: type[R]) -> R:
        where = self._where(group, name)
        record = to_record(plain, kind, where)
        check(record, name, where, self._root)
        return record

    def _where(self, group: str, name: str) -> str:
        lines = self._overrides.values.get(group, ())
        changed = f" (with {' '.join(lines)})" if lines else ""
        return option_file(self._conf, group, name) + changed
