"""Rules for kernels that no schema expresses: names that must exist, defaults among values, valid formulas.

`KERNEL_RULES` and `IMPLEMENTATION_RULES` list them in the order in which they are checked. A rule takes a
record and yields its violations.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.backends.cuda.launch_geometry import AXES, formulas
from pipeline.backends.devices.device_registry import device_kinds
from pipeline.backends.registry import backend, backend_names
from pipeline.backends.source_names import defined_names, exported_names, mentions
from pipeline.records.configuration.kernel import (
    DERIVED,
    Call,
    Given,
    Implementation,
    Kernel,
    Tensor,
    Tunable,
    TunableValue,
)
from pipeline.records.configuration.stage_settings import BASELINES
from pipeline.records.errors import FormulaError, hint, suggestion
from pipeline.records.formula import names_in

DTYPES = (
    *("element", "float64", "float32", "float16", "bfloat16"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)


class Violation(NamedTuple):
    """A rule that a record violates."""

    key: str
    """Path of the field, from the record; empty for the record itself."""
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" if self.key else self.text

    def below(self, key: str) -> "Violation":
        """The violation as seen from the record that has this one under `key`."""
        return Violation(f"{key}.{self.key}" if self.key else key, self.text)


class KernelImplementation(NamedTuple):
    """An implementation with what its rules refer to."""

    kernel: Kernel
    implementation: Implementation
    root: Path
    """Of the repository; sources are relative to it."""


Violations = Iterator[Violation]


def kernel_violations(kernel: Kernel, root: Path) -> Violations:
    """Everything that is wrong with a kernel; sources are looked for below `root`."""
    for rule in RECORDED_KERNEL_RULES if kernel.space is not None else KERNEL_RULES:
        yield from rule(kernel)
    if kernel.space is None:
        yield from _functions_exist(kernel, root)
    for key, implementation in kernel.implementations.items() if kernel.space is None else ():
        found = implementation_violations(KernelImplementation(kernel, implementation, root))
        yield from _below(f"implementations.{key}", found)


def implementation_violations(declared: KernelImplementation) -> Violations:
    """Everything that is wrong with an implementation; of an unknown backend, that alone."""
    unknown = tuple(_backend(declared))
    yield from unknown
    for rule in IMPLEMENTATION_RULES if not unknown else ():
        yield from rule(declared)


def unknown_preferences(kernel: Kernel) -> Violations:
    """Values that a tunable prefers and does not have."""
    for key, implementation in kernel.implementations.items():
        for name, tunable in implementation.tunables.items():
            for number, value in enumerate(tunable.prefer):
                place = f"implementations.{key}.tunables.{name}.prefer[{number}]"
                yield from not_among(place, value, tunable.values)


def _inputs_and_outputs(kernel: Kernel) -> Violations:
    roles = {tensor.role for tensor in kernel.tensors.values()}
    for role in ("input", "output"):
        if role not in roles:
            yield Violation("tensors", f"expected at least one {role}")


def _tensors(kernel: Kernel) -> Violations:
    for name, tensor in kernel.tensors.items():
        yield from _below(f"tensors.{name}", _tensor(tensor, kernel))


def _tensor(tensor: Tensor, kernel: Kernel) -> Violations:
    dimensions = kernel.dimensions
    known = {*dimensions, *kernel.attributes}
    for axis in tensor.shape:
        if axis.isidentifier():
            yield from _unknown("shape", "dimension", axis, dimensions)
        else:
            yield from _formula("shape", axis, known)
    yield from _unknown("dtype", "type", tensor.dtype, DTYPES)
    if tensor.layout == "row_strided" and len(tensor.shape) < 2:
        yield Violation("layout", f"row_strided needs two axes, got {len(tensor.shape)}")
    for key, limit in (("at_least", tensor.at_least), ("below", tensor.below)):
        if isinstance(limit, str) and limit.isidentifier():
            yield from _unknown(key, "dimension", limit, dimensions)
        elif isinstance(limit, str):
            yield from _formula(key, limit, known)
    if isinstance(tensor.below, int) and isinstance(tensor.at_least, int) and tensor.below <= tensor.at_least:
        yield Violation("below", f"got {tensor.below}, expected more than at_least = {tensor.at_least}")
    yield from _drawn(tensor)


def _drawn(tensor: Tensor) -> Violations:
    """What is said of the values of inputs."""
    if tensor.cumulative and (tensor.role == "output" or tensor.below is None):
        yield Violation("cumulative", "only integer inputs that have a range are drawn so")
    if tensor.distinct and (tensor.role == "output" or tensor.below is None or tensor.cumulative):
        yield Violation(
            "distinct", "only integer inputs that have a range, and are not cumulative, are drawn so"
        )
    if tensor.nonnegative and tensor.role == "output":
        yield Violation("nonnegative", "only inputs are drawn; what an output may be follows from them")
    if tensor.row_norm is not None and tensor.role == "output":
        yield Violation("row_norm", "only inputs are drawn; what an output may be follows from them")
    if tensor.row_norm is not None and tensor.row_norm <= 0.0:
        yield Violation("row_norm", f"got {tensor.row_norm}, expected a number above 0")


def _unique_names(kernel: Kernel) -> Violations:
    yield from _used_twice("", _names_of(kernel))


def _functions(kernel: Kernel) -> Violations:
    for key, path in _function_paths(kernel).items():
        module, _, function = path.partition(":")
        if not module or not function.isidentifier():
            yield Violation(key, f"expected module:function, got '{path}'")


def _function_paths(kernel: Kernel) -> dict[str, str]:
    """Key -> `module:function`."""
    paths = {"reference": kernel.reference}
    if kernel.tolerance.magnitude != DERIVED:
        paths["tolerance.magnitude"] = kernel.tolerance.magnitude
    for name, vendor in kernel.vendors.items():
        paths[f"vendors.{name}.function"] = vendor.function
        if vendor.set_up is not None:
            paths[f"vendors.{name}.set_up"] = vendor.set_up
        if vendor.prepare is not None:
            paths[f"vendors.{name}.prepare"] = vendor.prepare
    return paths


def _functions_exist(kernel: Kernel, root: Path) -> Violations:
    """Functions of modules of this project; those of packages are looked up where they are called."""
    for key, path in _function_paths(kernel).items():
        module, _, function = path.partition(":")
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        names = defined_names(file) if file.is_file() else None
        if names is not None and function not in names:
            yield Violation(key, f"{module} has no '{function}'{suggestion(function, sorted(names))}")


def _vendor_names(kernel: Kernel) -> Violations:
    for name in kernel.vendors:
        if name in BASELINES or not name.isidentifier():
            yield Violation("vendors", f"'{name}' is the name of another baseline, or no name")


def _vendor_kinds(kernel: Kernel) -> Violations:
    known = device_kinds()
    for name, vendor in kernel.vendors.items():
        for kind in vendor.kinds:
            if kind not in known:
                yield Violation(
                    f"vendors.{name}.kinds", f"unknown kind of device '{kind}'{hint(kind, known)}"
                )


def _gradient(kernel: Kernel) -> Violations:
    """A backward kernel says which inputs are the forward's and which are upstream gradients."""
    declared = kernel.gradient_of
    if declared is None:
        return
    inputs, outputs = _tensors_with(kernel, "input"), _tensors_with(kernel, "output")
    for key, names in (("inputs", declared.inputs), ("upstream", declared.upstream)):
        for name in names:
            yield from _unknown(f"gradient_of.{key}", "input", name, inputs)
    if set(declared.inputs) & set(declared.upstream):
        yield Violation("gradient_of", "an input is either the forward's or an upstream gradient")
    if len(declared.inputs) != len(outputs):
        expected = f"expected one for each output ({', '.join(outputs)})"
        yield Violation("gradient_of.inputs", f"{expected}, got {len(declared.inputs)}")
    magnitude = kernel.tolerance.magnitude
    if magnitude != DERIVED:
        yield Violation("gradient_of", f"needs tolerance.magnitude: {DERIVED}, got '{magnitude}'")


def _kernel_formulas(kernel: Kernel) -> Violations:
    known = {*kernel.dimensions, *kernel.attributes, "itemsize"}
    for key, formula in (("flops", kernel.cost.flops), ("bytes", kernel.cost.bytes)):
        if formula is None:
            yield Violation(f"cost.{key}", "expected a formula, got null")
        else:
            yield from _formula(f"cost.{key}", formula, known)
    yield from _formula("tolerance.reduction", kernel.tolerance.reduction, known)
    for name, expression in kernel.dimensions.items():
        yield from _formula(f"dimensions.{name}", expression)


def _has_implementations(kernel: Kernel) -> Violations:
    if not kernel.implementations:
        yield Violation("implementations", "expected at least one")


def _runs_nothing(kernel: Kernel) -> Violations:
    for key in ("reference", "tensors", "implementations", "vendors"):
        if getattr(kernel, key):
            yield Violation(key, "the kernel has a space of recorded measurements, and nothing that runs")


def _backend(declared: KernelImplementation) -> Violations:
    yield from _unknown("backend", "backend", declared.implementation.backend, backend_names())


def _source(declared: KernelImplementation) -> Violations:
    """A source of this repository, unless a callable of an installed package stands in its place."""
    implementation = declared.implementation
    if implementation.call is not None:
        if implementation.source or implementation.entry:
            yield Violation("", "'call' stands in place of 'source' and 'entry'")
        return
    for key in ("source", "entry"):
        if not getattr(implementation, key):
            yield Violation("", f"missing key '{key}' (or 'call', for a callable of an installed package)")
    if not implementation.source:
        return
    path = (declared.root / implementation.source).resolve()
    if not path.is_file():
        yield Violation("source", f"there is no file {implementation.source}")
    elif not path.is_relative_to(declared.root.resolve()):
        yield Violation("source", f"{implementation.source} leads to {path}, which is not in the project")


def _entry(declared: KernelImplementation) -> Violations:
    """The source defines the entry point, as far as its text tells."""
    entry, source = declared.implementation.entry, declared.implementation.source
    path = declared.root / source
    if not entry or not source or not path.is_file():
        return
    found = backend(declared.implementation.backend)
    if found.language.preprocessor:
        files = found.sources(declared.implementation, declared.root)
        missing = not any(mentions(each, entry) for each in files)
        names = exported_names(path)
    else:
        known = defined_names(path)
        missing, names = known is not None and entry not in known, known or frozenset()
    if missing:
        yield Violation("entry", f"{source} has no '{entry}'{suggestion(entry, sorted(names))}")


def _call(declared: KernelImplementation) -> Violations:
    """A callable of an installed package; the package need not be installed to be declared."""
    name, call = declared.implementation.backend, declared.implementation.call
    if call is None:
        return
    if not backend(name).calls_packages:
        known = ", ".join(each for each in backend_names() if backend(each).calls_packages)
        yield Violation("call", f"the backend {name} compiles sources (known: {known})")
    yield from _below("call", _call_violations(declared.kernel, declared.implementation, call))


def _call_violations(kernel: Kernel, implementation: Implementation, call: Call) -> Violations:
    module, _, names = call.function.partition(":")
    if not module or not names or not all(name.isidentifier() for name in names.split(".")):
        expected = "expected module:function or module:Class.apply"
        yield Violation("function", f"{expected}, got '{call.function}'")
    yield from _call_arguments(kernel, implementation, call)
    yield from _call_results(_tensors_with(kernel, "output"), call)
    yield from _call_gradients(_tensors_with(kernel, "input"), call)


def _call_arguments(kernel: Kernel, implementation: Implementation, call: Call) -> Violations:
    inputs = _tensors_with(kernel, "input")
    known = {*inputs, *kernel.scalars, *kernel.attributes, *implementation.tunables}
    arguments = {f"arguments[{number}]": each for number, each in enumerate(call.arguments)}
    arguments |= {f"keywords.{key}": each for key, each in call.keywords.items()}
    for key, argument in arguments.items():
        if isinstance(argument, str) and argument not in known:
            names = hint(argument, sorted(known))
            yield Violation(key, f"unknown name '{argument}'{names}; a string is {{literal: …}}")
        elif isinstance(argument, Given) and isinstance(argument.copy, str):
            yield from _unknown(f"{key}.copy", "input", argument.copy, inputs)


def _call_results(outputs: Collection[str], call: Call) -> Violations:
    for number, name in enumerate(call.results):
        if name is not None and name not in outputs:
            yield from _unknown(f"results[{number}]", "output", name, outputs)
        elif name is not None and name in call.results[:number]:
            yield Violation(f"results[{number}]", f"'{name}' stands there twice")
    for name in outputs:
        if name not in call.results:
            yield Violation("results", f"the output '{name}' is missing")


def _call_gradients(inputs: Collection[str], call: Call) -> Violations:
    declared = call.gradients
    if declared is None:
        return
    given = [argument.copy if isinstance(argument, Given) else argument for argument in call.arguments]
    for name in declared.of:
        if name not in given:
            yield Violation("gradients.of", f"'{name}' is none of the arguments")
    for name in declared.upstream:
        yield from _unknown("gradients.upstream", "input", name, inputs)
    if len(declared.of) != len(call.results):
        counts = f"{len(declared.of)} gradients for {len(call.results)} results"
        yield Violation("gradients.of", f"{counts}, expected one for each")


def _launch(declared: KernelImplementation) -> Violations:
    """The launch geometry belongs to backends whose sources have no host code."""
    name, launch = declared.implementation.backend, declared.implementation.launch
    needed = backend(name).needs_launch
    if needed and launch is None:
        yield Violation("", f"missing key 'launch', which backend: {name} needs")
    if launch is not None and not needed:
        yield Violation("", f"backend: {name} takes no 'launch': its sources launch themselves")
    if launch is None:
        return
    for key in ("grid", "block", "cluster"):
        axes = getattr(launch, key)
        if axes is not None and not 1 <= len(axes) <= AXES:
            yield Violation(f"launch.{key}", f"expected 1 to {AXES} axes, got {len(axes)}")
    for key, formula in formulas(launch).items():
        if isinstance(formula, str):
            yield from _formula(f"launch.{key}", formula)


def _tunables(declared: KernelImplementation) -> Violations:
    for name, tunable in declared.implementation.tunables.items():
        yield from _below(f"tunables.{name}", _tunable(tunable))
    yield from _used_twice("tunables", [*declared.implementation.tunables, *_names_of(declared.kernel)])


def _tunable(tunable: Tunable) -> Violations:
    values = tunable.values
    if not values:
        yield Violation("values", "expected at least one")
    for number, value in enumerate(values):
        if value in values[:number]:  # 1, 1.0 and true are one value to every formula
            yield Violation("values", f"{value!r} stands there twice")
    yield from not_among("default", tunable.default, values)
    for number, value in enumerate(tunable.prefer):
        if value in (*tunable.prefer[:number], tunable.default):
            yield Violation(f"prefer[{number}]", f"{value!r} stands there twice, or is the default")
    if tunable.off is not None:
        yield from not_among("off", tunable.off, values)
        if tunable.technique is None:
            yield Violation("off", "nothing to switch off: the tunable has no technique")


def _constraints(declared: KernelImplementation) -> Violations:
    for number, constraint in enumerate(declared.implementation.constraints):
        yield from _formula(f"constraints[{number}].rule", constraint.rule)


KERNEL_RULES: tuple[Callable[[Kernel], Violations], ...] = (
    *(_inputs_and_outputs, _tensors, _unique_names, _functions, _vendor_names, _vendor_kinds),
    *(_gradient, _kernel_formulas, _has_implementations),
)
RECORDED_KERNEL_RULES: tuple[Callable[[Kernel], Violations], ...] = (_runs_nothing,)
"""Of a kernel that is known by recorded measurements alone."""
IMPLEMENTATION_RULES = (_source, _entry, _call, _launch, _tunables, _constraints)


def _below(key: str, violations: Iterable[Violation]) -> Violations:
    return (violation.below(key) for violation in violations)


def _unknown(key: str, what: str, name: str, known: Collection[str]) -> Violations:
    if name not in known:
        yield Violation(key, f"unknown {what} '{name}'{hint(name, known)}")


def not_among(key: str, value: TunableValue, values: Collection[TunableValue]) -> Violations:
    """A violation unless the value is one of the values, with the same type."""
    if not any(value == each and type(value) is type(each) for each in values):
        listed = ", ".join(map(repr, dict.fromkeys(values)))
        yield Violation(key, f"{value!r} is not one of its values ({listed})")


def _formula(key: str, expression: str, known: Collection[str] | None = None) -> Violations:
    """A formula must parse, and with `known` read known names only."""
    try:
        names = names_in(expression)
    except FormulaError as error:
        yield Violation(key, str(error))
        return
    for name in sorted(names - set(known)) if known is not None else ():
        yield Violation(key, f"`{expression}`: unknown name '{name}'{hint(name, sorted(known or ()))}")


def _names_of(kernel: Kernel) -> list[str]:
    return [*kernel.tensors, *kernel.dimensions, *kernel.scalars, *kernel.attributes]


def _tensors_with(kernel: Kernel, role: str) -> tuple[str, ...]:
    return tuple(name for name, tensor in kernel.tensors.items() if tensor.role == role)


def _used_twice(key: str, names: Iterable[str]) -> Violations:
    """Formulas and the C ABI read all names from one name space."""
    seen = set()
    for name in names:
        if name in seen:
            shared = "tensors, dimensions, scalars, attributes and tunables share one name space"
            yield Violation(key, f"the name '{name}' is used twice ({shared})")
        seen.add(name)
