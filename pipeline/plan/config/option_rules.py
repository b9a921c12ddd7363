"""Rules for options that no schema expresses: an option in, nothing or its first violation as an error out.

`RULES` lists the rules of each kind of option, in the order in which they are checked; those of a kernel are
in `kernel_rules`. A rule takes a record and yields its violations: a new one is a function and a table entry.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from pipeline.backends.devices.device_registry import device_kinds
from pipeline.plan.config.groups import AXES
from pipeline.plan.config.kernel_rules import (
    Violation,
    Violations,
    kernel_violations,
    not_among,
    unknown_preferences,
)
from pipeline.records.configuration.experiment import Experiment
from pipeline.records.configuration.hardware import RECORDED, Hardware
from pipeline.records.configuration.kernel import Kernel, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.search_settings import Search
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, hint
from pipeline.records.formula import names_in
from pipeline.records.record import Record
from pipeline.search.strategy_registry import members, strategy

NATIVE = "native"
"""Architecture of a hardware target that is read from the machine."""


def check(record: Record, name: str, where: str, root: Path, *, narrowed: bool = False) -> None:
    """Check one option; `narrowed`: whether the command line gives tunables other values.

    Raises
    ------
    ConfigError
        The first violation: `where: key: what, expected, got`.
    """
    for violation in _violations(record, name, root, narrowed=narrowed):
        raise ConfigError(f"{where}: {violation}")


def _violations(record: Record, name: str, root: Path, *, narrowed: bool) -> Violations:
    file = name.rpartition("/")[2]
    declared = getattr(record, "name", file)
    if declared != file:
        yield Violation("name", f"expected '{file}' as the file is called, got '{declared}'")
    if isinstance(record, Kernel):
        yield from kernel_violations(record, root)
        # To give a tunable fewer values one need not know which of them it prefers.
        if not narrowed:
            yield from unknown_preferences(record)
    for rule in RULES.get(type(record), ()):
        yield from rule(record)


def check_optimization(optimization: Optimization, kernels: Collection[Kernel], where: str) -> None:
    """Check that each name in an optimization exists in at least one of the kernels.

    Raises
    ------
    ConfigError
        A tunable, technique or implementation is unknown, or a value is not one of the tunable's.
    """
    named = [each for kernel in kernels for each in kernel.implementations.items()]
    tunables: dict[str, list[Tunable]] = {}
    for _, implementation in named:
        for name, tunable in implementation.tunables.items():
            tunables.setdefault(name, []).append(tunable)
    techniques = {each.technique for several in tunables.values() for each in several if each.technique}
    for key, names, known in (
        ("free", optimization.free, sorted(tunables)),
        ("fixed", tuple(optimization.fixed), sorted(tunables)),
        ("techniques", optimization.techniques, sorted(techniques)),
        ("implementations", optimization.implementations, sorted({name for name, _ in named})),
    ):
        for name in () if names == "all" else names:
            if name not in known:
                raise ConfigError(f"{where}: {key}: no kernel has '{name}'{hint(name, known)}")
    for name, value in optimization.fixed.items():
        values = [declared for tunable in tunables[name] for declared in tunable.values]
        for violation in not_among(f"fixed.{name}", value, values):
            raise ConfigError(f"{where}: {violation}")


def dimensions_read(kernels: Iterable[Kernel]) -> set[str]:
    """The dimensions of workloads that kernels read."""
    return {name for each in kernels for formula in each.dimensions.values() for name in names_in(formula)}


def dimensions_given(workloads: Iterable[Workload]) -> set[str]:
    """The dimensions that workloads have."""
    return {name for each in workloads for name in each.dimensions}


def check_dimensions_read(kernel: Kernel, known: Collection[str], where: str) -> None:
    """Raise ConfigError for the first dimension of a kernel that reads what no workload has."""
    for key, formula in kernel.dimensions.items():
        for name in sorted(names_in(formula) - set(known)):
            unknown = f"`{formula}`: no workload has '{name}'{hint(name, sorted(known))}"
            raise ConfigError(f"{where}: dimensions.{key}: {unknown}")


def check_dimensions_given(names: Collection[str], known: Collection[str], where: str) -> None:
    """Raise ConfigError for the first of a workload's dimensions that no kernel reads."""
    for name in sorted(set(names) - set(known)):
        raise ConfigError(f"{where}: dimensions.{name}: no kernel reads it{hint(name, sorted(known))}")


def _dimensions(workload: Workload) -> Violations:
    for key, value in workload.dimensions.items():
        if value < 1:
            yield Violation(f"dimensions.{key}", f"expected at least 1, got {value}")


def _kind(hardware: Hardware) -> Violations:
    kinds = (*device_kinds(), RECORDED)
    if hardware.kind not in kinds:
        yield Violation("kind", f"unknown kind of device '{hardware.kind}'{hint(hardware.kind, kinds)}")


def _limits_and_peaks(hardware: Hardware) -> Violations:
    for name, limit in hardware.limits.items():
        if limit.value != int(limit.value) or limit.value < 0:
            yield Violation(f"limits.{name}.value", f"expected a whole number, got {limit.value:g}")
    for name, peak in hardware.peaks.items():
        if peak.value <= 0:
            yield Violation(f"peaks.{name}.value", f"expected more than 0, got {peak.value:g}")
    replays = hardware.recorded is not None or hardware.kind == RECORDED
    if hardware.architecture != NATIVE and not hardware.limits and not replays:
        yield Violation(
            "limits", f"expected at least one (only architecture: {NATIVE} is read from the machine)"
        )


def _budgets(search: Search) -> Violations:
    if search.rounds < 1:
        yield Violation("rounds", f"expected at least 1, got {search.rounds}")
    if search.variants_per_round is not None and search.variants_per_round < 1:
        yield Violation("variants_per_round", f"expected at least 1, got {search.variants_per_round}")
    if search.rounds > 1 and search.variants_per_round is None:
        yield Violation("variants_per_round", "several rounds need a number, or the first one takes all")
    for budget in ("variants", "seconds", "joules"):
        if (value := getattr(search, budget)) is not None and value <= 0:
            yield Violation(budget, f"expected more than 0, got {value:g}")


def _strategies(search: Search) -> Violations:
    """The strategy, those that it wraps, and the rules that it has itself."""
    names = members(search)
    for name in names[1:]:
        if not strategy(name).may_be_wrapped:
            yield Violation(search.strategy, f"{name} cannot search for another strategy")
    for name in search.settings:
        if name not in names:
            yield Violation(name, f"settings of another strategy; got strategy: {search.strategy}")
    if (problems := strategy(search.strategy).problems) is not None:
        yield from (Violation("", text) for text in problems(search))


def _selections(experiment: Experiment) -> Violations:
    if not experiment.select:
        yield Violation("select", "expected at least one grid")
    for number, selection in enumerate(experiment.select):
        for axis in AXES:
            if not getattr(selection, axis):
                yield Violation(f"select[{number}].{axis}", "expected at least one name")
        for name, sizes in selection.dimensions.items():
            if min(sizes, default=0) < 1:
                what = f"expected sizes of at least 1, got {list(sizes)}"
                yield Violation(f"select[{number}].dimensions.{name}", what)


RULES: dict[type[Record], tuple[Callable[[Any], Violations], ...]] = {
    Workload: (_dimensions,),
    Hardware: (_kind, _limits_and_peaks),
    Search: (_budgets, _strategies),
    Experiment: (_selections,),
}
