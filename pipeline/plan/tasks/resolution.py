"""One cell of the grid, resolved: problem and implementations, or the reason why there is no task."""

from collections.abc import Iterable, Mapping

import msgspec

from pipeline.backends.registry import backend
from pipeline.plan.memoize import Memoized
from pipeline.records.configuration.hardware import DeviceKind, Hardware, Target
from pipeline.records.configuration.kernel import Implementation, Kernel, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, FormulaError
from pipeline.records.formula import evaluate_number, names_in
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record, digest
from pipeline.search.spaces.search_space import Subspace, Tunables, set_value, subspace


class Impossible(Exception):
    """There is no such task; the text says why. Not an error: the plan lists it among what was pruned."""


def problem_of(kernel: Kernel, workload: Workload, where: str) -> Problem:
    """kernel x workload on concrete dimensions.

    Raises
    ------
    Impossible
        The workload lacks a dimension, or gives one that is below 1.
    ConfigError
        A formula cannot be evaluated.
    """
    dimensions = {}
    for name, expression in kernel.dimensions.items():
        for needed in sorted(names_in(expression) - workload.dimensions.keys()):
            raise Impossible(f"workload {workload.name} has no dimension '{needed}'")
        try:
            value = evaluate_number(expression, workload.dimensions)
        except FormulaError as error:
            raise ConfigError(f"{where}: dimensions.{name}: {error}") from None
        if value != int(value) or value < 1:
            raise Impossible(f"{name} = {expression} is {value:g} on workload {workload.name}")
        dimensions[name] = int(value)
    dtypes = {
        name: workload.dtype if tensor.dtype == "element" else tensor.dtype
        for name, tensor in kernel.tensors.items()
    }
    return Problem(
        kernel=kernel.name,
        dimensions=dimensions,
        tensors={
            name: msgspec.structs.replace(tensor, dtype=dtypes[name])
            for name, tensor in kernel.tensors.items()
        },
        scalars=kernel.scalars,
        attributes=kernel.attributes,
        element=workload.dtype,
    )


def target_of(hardware: Hardware, implementations: Mapping[str, Implementation]) -> Target:
    """What compile, and the constraints of these implementations, read of a hardware target.

    No compiler reads the size of a cache: it counts only where a constraint names it, so that devices which
    differ in nothing else (H100 and H200) share their binaries.
    """
    named = limits_named(implementations)
    return Target(
        kind=hardware.kind,
        architecture=hardware.architecture,
        limits={
            name: limit
            for name, limit in limits_of(hardware).items()
            if name in named or not name.endswith("_cache")
        },
        features=hardware.features,
    )


def limits_of(hardware: Hardware) -> dict[str, int]:
    """All limits as plain numbers."""
    return {name: int(limit.value) for name, limit in hardware.limits.items()}


def limits_named(implementations: Mapping[str, Implementation]) -> frozenset[str]:
    """The names that their constraints read, limits among them."""
    rules = [rule.rule for each in implementations.values() for rule in each.constraints]
    return frozenset().union(*(names_in(rule) for rule in rules))


def fitting(kernel: Kernel, kind: DeviceKind, optimization: Optimization) -> dict[str, Implementation]:
    """The implementations that can run on a kind of device and take part in the optimization.

    Raises
    ------
    Impossible
        None does.
    """
    wanted = optimization.implementations
    chosen = {
        name: implementation
        for name, implementation in kernel.implementations.items()
        if wanted == "all" or name in wanted
    }
    if not chosen:
        raise Impossible(f"{kernel.name} has none of the implementations of {optimization.name}")
    found = {
        name: implementation
        for name, implementation in chosen.items()
        if kind in backend(implementation.backend).kinds
    }
    if not found:
        raise Impossible(f"no implementation runs on {kind} (there is {', '.join(chosen)})")
    return found


_Chosen = dict[str, Implementation]


class _Narrowed(Record, frozen=True, kw_only=True):
    """An implementation's space before it is known for which problem and device."""

    space: Subspace
    names: tuple[str, ...]
    """All that its rules read."""
    identity: str


class Spaces:
    """Solves the spaces of a plan, each distinct one once: many tasks share theirs."""

    def __init__(self) -> None:
        self._narrowed = Memoized(_narrowed)
        self._counts: dict[tuple[str, str], int] = {}
        self._defaults: dict[tuple[int, int, str], tuple[_Chosen, Optimization, _Chosen]] = {}
        self._distinct: dict[str, _Chosen] = {}

    def with_defaults(
        self, implementations: _Chosen, optimization: Optimization, constants: Tunables, where: str
    ) -> _Chosen:
        """The implementations with the defaults that they have on this problem and target.

        Of the combinations of preferred values the first that satisfies all rules; the earlier a tunable is
        declared, the more its preference counts. Where none does, the nearest point that does. What the
        optimization fixes or switches off stays so.

        Raises
        ------
        ConfigError
            A constraint cannot be evaluated.
        """
        key = (id(implementations), id(optimization), _read(limits_named(implementations), constants))
        if key not in self._defaults:
            try:
                found = {
                    name: _with_defaults(name, each, optimization, constants)
                    for name, each in implementations.items()
                }
            except FormulaError as error:
                raise ConfigError(f"{where}: constraints: {error}") from None
            # Equal ones are one object: what is made of them later is kept by identity, and so is this.
            shared = self._distinct.setdefault(digest(found), found)
            self._defaults[key] = (implementations, optimization, shared)
        return self._defaults[key][2]

    def counts(
        self,
        implementations: Mapping[str, Implementation],
        optimization: Optimization,
        constants: Tunables,
        where: str,
    ) -> dict[str, int]:
        """Number of valid variants of each implementation.

        Raises
        ------
        Impossible
            There is none; the text names a rule of each implementation that excludes what was left.
        ConfigError
            A constraint cannot be evaluated.
        """
        try:
            counts = {
                name: self._count(self._narrowed(name, each, optimization), constants)
                for name, each in implementations.items()
            }
            if not any(counts.values()):
                spaces = (
                    subspace(name, each, optimization, constants) for name, each in implementations.items()
                )
                raise Impossible("no valid variant: " + "; ".join(map(_why_empty, spaces)))
        except FormulaError as error:
            raise ConfigError(f"{where}: constraints: {error}") from None
        return counts

    def _count(self, narrowed: _Narrowed, constants: Tunables) -> int:
        key = (narrowed.identity, _read(narrowed.names, constants))
        if key not in self._counts:
            self._counts[key] = msgspec.structs.replace(narrowed.space, constants=constants).count
        return self._counts[key]


def _read(names: Iterable[str], constants: Tunables) -> str:
    """What rules with these names depend on. As texts 1, 1.0 and True differ; as keys they are equal."""
    return repr([(name, constants[name]) for name in sorted(names) if name in constants])


def _with_defaults(
    name: str, implementation: Implementation, optimization: Optimization, constants: Tunables
) -> Implementation:
    declared = implementation.tunables
    settled = {
        tunable: value
        for tunable, each in declared.items()
        if (value := set_value(tunable, each, optimization)) is not None
    }
    space = Subspace(
        implementation=name,
        values={tunable: each.values for tunable, each in declared.items()},
        default={tunable: each.default for tunable, each in declared.items()},
        constraints=implementation.constraints,
        constants=constants,
    )
    own = _default_point(space, declared, {})
    chosen = _default_point(space, declared, settled) if settled else own
    return msgspec.structs.replace(
        implementation,
        tunables={
            tunable: msgspec.structs.replace(
                each, default=(own if tunable in settled else chosen)[tunable], prefer=()
            )
            for tunable, each in declared.items()
        },
    )


def _default_point(space: Subspace, declared: Mapping[str, Tunable], settled: Tunables) -> Tunables:
    """The first valid combination of preferred values, or else the nearest valid point."""
    only = {tunable: (value,) for tunable, value in settled.items()}
    preferred = {
        tunable: (*(value for value in each.prefer if value in each.values), each.default)
        for tunable, each in declared.items()
    }
    found = msgspec.structs.replace(space, values=preferred | only).points()
    if found:
        return found[0]
    default = space.default | settled
    return msgspec.structs.replace(space, values=space.values | only).nearest(default) or default


def _narrowed(name: str, implementation: Implementation, optimization: Optimization) -> _Narrowed:
    space = subspace(name, implementation, optimization, {})
    rules = [names_in(each.rule) for each in space.constraints]
    return _Narrowed(
        space=space,
        names=tuple(sorted(frozenset().union(*rules))),
        identity=digest([space.implementation, space.values, space.constraints]),
    )


def _why_empty(space: Subspace) -> str:
    """The first rule after which nothing is left."""
    for number, rule in enumerate(space.constraints):
        if not msgspec.structs.replace(space, constraints=space.constraints[: number + 1]).has_point():
            return f"{space.implementation}: {rule.reason} (`{rule.rule}`)"
    return f"{space.implementation}: nothing to choose from"
