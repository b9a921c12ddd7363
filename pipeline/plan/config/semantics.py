"""Checks that no schema expresses: names that must exist elsewhere, defaults among values, formulas."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pipeline.backends import registry as backends
from pipeline.backends.cuda.launch_geometry import AXES, formulas
from pipeline.plan.config.groups import hint
from pipeline.records.configuration.experiment import Experiment
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.kernel import (
    DERIVED,
    Argument,
    Call,
    Cost,
    Given,
    GradientOf,
    Implementation,
    Kernel,
    Tensor,
    Tunable,
    TunableValue,
)
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.search_settings import Search
from pipeline.records.configuration.stage_settings import BASELINES
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, FormulaError
from pipeline.records.formula import names_in
from pipeline.records.record import Record
from pipeline.search.strategy_registry import members, strategy

DTYPES = (
    *("element", "float64", "float32", "float16", "bfloat16"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
NATIVE = "native"  # the architecture of a hardware target that is read from the machine


def check(record: Record, name: str, where: str, root: Path) -> None:
    """Check one option.

    Raises
    ------
    ConfigError
        The first thing that is wrong: `where: key: what, expected, got`.
    """
    for problem in _problems(record, name, root):
        raise ConfigError(f"{where}: {problem}")


def check_optimization(optimization: Optimization, kernels: Collection[Kernel], where: str) -> None:
    """Every tunable, technique and implementation that it names exists in at least one of the kernels."""
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
                raise ConfigError(f"{where}: {key}: no kernel has '{name}' {hint(name, known)}")
    for name, value in optimization.fixed.items():
        values = [declared for tunable in tunables[name] for declared in tunable.values]
        if not _among(value, values):
            text = f"fixed.{name}: {value!r} is not one of its values ({_listed(values)})"
            raise ConfigError(f"{where}: {text}")


def _problems(record: Record, name: str, root: Path) -> Iterator[str]:
    declared = getattr(record, "name", name)
    if declared != name:
        yield f"name: expected '{name}' as the file is called, got '{declared}'"
    match record:
        case Kernel() if record.space is not None:
            yield from _recorded(record)
        case Kernel():
            yield from _kernel(record)
            for key, implementation in record.implementations.items():
                yield from _implementation(record, implementation, f"implementations.{key}", root)
        case Workload():
            for key, value in record.dimensions.items():
                if value < 1:
                    yield f"dimensions.{key}: expected at least 1, got {value}"
        case Hardware():
            yield from _hardware(record)
        case Search():
            yield from search_problems(record)
        case Experiment():
            yield from _experiment(record)


def _kernel(kernel: Kernel) -> Iterator[str]:
    roles = {tensor.role for tensor in kernel.tensors.values()}
    for role in ("input", "output"):
        if role not in roles:
            yield f"tensors: expected at least one {role}"
    for name, tensor in kernel.tensors.items():
        yield from _tensor(kernel, tensor, f"tensors.{name}")
    yield from _twice([*kernel.tensors, *kernel.dimensions, *kernel.scalars, *kernel.attributes])
    for key, path in _functions(kernel):
        module, _, function = path.partition(":")
        if not module or not function.isidentifier():
            yield f"{key}: expected module:function, got '{path}'"
    for name in kernel.vendors:
        if name in BASELINES or not name.isidentifier():
            yield f"vendors: '{name}' is the name of another baseline, or no name"
    if kernel.gradient_of is not None:
        yield from gradient_problems(kernel, kernel.gradient_of)
    known = {*kernel.dimensions, *kernel.attributes, "itemsize"}
    yield from _cost(kernel.cost, known)
    yield from _formula(kernel.tolerance.reduction, "tolerance.reduction", known)
    for name, expression in kernel.dimensions.items():
        yield from _formula(expression, f"dimensions.{name}", None)
    if not kernel.implementations:
        yield "implementations: expected at least one"


def _recorded(kernel: Kernel) -> Iterator[str]:
    """A kernel that is known by recorded measurements alone."""
    for key in ("reference", "tensors", "implementations", "vendors"):
        if getattr(kernel, key):
            yield f"{key}: the kernel has a space of recorded measurements, and nothing that runs"


def _cost(cost: Cost, known: Collection[str]) -> Iterator[str]:
    for key, formula in (("flops", cost.flops), ("bytes", cost.bytes)):
        if formula is None:
            yield f"cost.{key}: expected a formula, got null"
        else:
            yield from _formula(formula, f"cost.{key}", known)


def _functions(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Key and path of every function that the yaml names."""
    yield "reference", kernel.reference
    if kernel.tolerance.magnitude != DERIVED:
        yield "tolerance.magnitude", kernel.tolerance.magnitude
    for name, vendor in kernel.vendors.items():
        yield f"vendors.{name}.function", vendor.function
        if vendor.set_up is not None:
            yield f"vendors.{name}.set_up", vendor.set_up


def _tensor(kernel: Kernel, tensor: Tensor, path: str) -> Iterator[str]:
    for axis in tensor.shape:
        if axis not in kernel.dimensions:
            yield f"{path}.shape: unknown dimension '{axis}' {hint(axis, kernel.dimensions)}"
    if tensor.dtype not in DTYPES:
        yield f"{path}.dtype: unknown type '{tensor.dtype}' {hint(tensor.dtype, DTYPES)}"
    if tensor.layout == "row_strided" and len(tensor.shape) < 2:
        yield f"{path}.layout: row_strided needs two axes, got {len(tensor.shape)}"
    below = tensor.below
    if below is not None and below not in kernel.dimensions:
        yield f"{path}.below: unknown dimension '{below}' {hint(below, kernel.dimensions)}"


def _implementation(kernel: Kernel, implementation: Implementation, path: str, root: Path) -> Iterator[str]:
    name, known = implementation.backend, backends.backend_names()
    if name not in known:
        yield f"{path}.backend: unknown backend '{name}' {hint(name, known)}"
    yield from _origin(kernel, implementation, path, root)
    yield from _launch(implementation, path)
    for name, tunable in implementation.tunables.items():
        yield from _tunable(tunable, f"{path}.tunables.{name}")
    taken = [*kernel.tensors, *kernel.dimensions, *kernel.scalars, *kernel.attributes]
    yield from _twice([*implementation.tunables, *taken], f"{path}.tunables: ")
    for number, constraint in enumerate(implementation.constraints):
        yield from _formula(constraint.rule, f"{path}.constraints[{number}].rule", None)


def _origin(kernel: Kernel, implementation: Implementation, path: str, root: Path) -> Iterator[str]:
    """Where its code comes from: a source here, or a package that need not be installed to be declared."""
    call = implementation.call
    if call is None:
        for key in ("source", "entry"):
            if not getattr(implementation, key):
                yield f"{path}: missing key '{key}' (or 'call', for a callable of an installed package)"
        if implementation.source and not (root / implementation.source).is_file():
            yield f"{path}.source: there is no file {implementation.source}"
        return
    if implementation.source or implementation.entry:
        yield f"{path}: 'call' stands in place of 'source' and 'entry'"
    if implementation.backend not in CALLING:
        known = ", ".join(CALLING)
        yield f"{path}.call: the backend {implementation.backend} compiles sources (known: {known})"
    yield from (f"{path}.call.{problem}" for problem in call_problems(kernel, implementation, call))


def _launch(implementation: Implementation, path: str) -> Iterator[str]:
    """The geometry belongs to CUDA C++, whose source has no host code."""
    launch = implementation.launch
    if (launch is None) == (implementation.backend == "cuda"):
        expected = "missing key 'launch' with" if launch is None else "'launch' stands only with"
        yield f"{path}: {expected} backend: cuda"
    if launch is None:
        return
    for key in ("grid", "block", "cluster"):
        axes = getattr(launch, key)
        if axes is not None and not 1 <= len(axes) <= AXES:
            yield f"{path}.launch.{key}: expected 1 to {AXES} axes, got {len(axes)}"
    for key, formula in formulas(launch).items():
        if isinstance(formula, str):
            yield from _formula(formula, f"{path}.launch.{key}", None)


def _tunable(tunable: Tunable, path: str) -> Iterator[str]:
    values = tunable.values
    if not values:
        yield f"{path}.values: expected at least one"
    for number, value in enumerate(values):
        if value in values[:number]:  # 1, 1.0 and true are one value to every formula
            yield f"{path}.values: {value!r} stands there twice"
    if not _among(tunable.default, values):
        yield f"{path}.default: {tunable.default!r} is not one of its values ({_listed(values)})"
    if tunable.off is not None and not _among(tunable.off, values):
        yield f"{path}.off: {tunable.off!r} is not one of its values ({_listed(values)})"
    if tunable.off is not None and tunable.technique is None:
        yield f"{path}.off: nothing to switch off: the tunable has no technique"


def _hardware(hardware: Hardware) -> Iterator[str]:
    for name, limit in hardware.limits.items():
        if limit.value != int(limit.value) or limit.value < 0:
            yield f"limits.{name}.value: expected a whole number, got {limit.value:g}"
    for name, peak in hardware.peaks.items():
        if peak.value <= 0:
            yield f"peaks.{name}.value: expected more than 0, got {peak.value:g}"
    replays = hardware.recorded is not None or hardware.kind == "recorded"
    if hardware.architecture != NATIVE and not hardware.limits and not replays:
        yield f"limits: expected at least one (only architecture: {NATIVE} is read from the machine)"


def _experiment(experiment: Experiment) -> Iterator[str]:
    if not experiment.select:
        yield "select: expected at least one grid"
    for number, selection in enumerate(experiment.select):
        for axis in selection.__struct_fields__:
            if not getattr(selection, axis):
                yield f"select[{number}].{axis}: expected at least one name"


def _formula(expression: str, path: str, known: Collection[str] | None) -> Iterator[str]:
    """Whether it parses, and with `known` whether it reads known names only."""
    try:
        names = names_in(expression)
    except FormulaError as error:
        yield f"{path}: {error}"
        return
    for name in sorted(names - set(known)) if known is not None else ():
        yield f"{path}: `{expression}`: unknown name '{name}' {hint(name, sorted(known or ()))}"


def _twice(names: Iterable[str], prefix: str = "") -> Iterator[str]:
    """Formulas and the C ABI know all of them by one name."""
    seen = set()
    for name in names:
        if name in seen:
            used = "tensors, dimensions, scalars, attributes and tunables share one name space"
            yield f"{prefix}the name '{name}' is used twice ({used})"
        seen.add(name)


def _among(value: TunableValue, values: Iterable[TunableValue]) -> bool:
    return any(value == each and type(value) is type(each) for each in values)


def _listed(values: Iterable[TunableValue]) -> str:
    return ", ".join(repr(value) for value in dict.fromkeys(values))


def search_problems(search: Search) -> Iterator[str]:
    """Budgets, rounds, settings of other strategies, and what the strategy itself finds."""
    if search.rounds < 1:
        yield f"rounds: expected at least 1, got {search.rounds}"
    if search.variants_per_round is not None and search.variants_per_round < 1:
        yield f"variants_per_round: expected at least 1, got {search.variants_per_round}"
    if search.rounds > 1 and search.variants_per_round is None:
        yield "variants_per_round: several rounds need a number, or the first one takes all"
    for budget in ("variants", "seconds", "joules"):
        if (value := getattr(search, budget)) is not None and value <= 0:
            yield f"{budget}: expected more than 0, got {value:g}"
    taking_part = members(search)
    for name in taking_part[1:]:
        if not strategy(name).may_be_wrapped:
            yield f"{search.strategy}: {name} cannot search for another strategy"
    for name in search.settings:
        if name not in taking_part:
            yield f"{name}: settings of another strategy; got strategy: {search.strategy}"
    if (problems := strategy(search.strategy).problems) is not None:
        yield from problems(search)


CALLING = ("triton",)
"""Backends whose implementations may be callables of packages."""


def call_problems(kernel: Kernel, implementation: Implementation, call: Call) -> Iterator[str]:
    """All that is wrong: `key: what`."""
    module, _, names = call.function.partition(":")
    if not module or not names or not all(name.isidentifier() for name in names.split(".")):
        yield f"function: expected module:function or module:Class.apply, got '{call.function}'"
    inputs = tuple(name for name, tensor in kernel.tensors.items() if tensor.role == "input")
    known = {*inputs, *kernel.scalars, *kernel.attributes, *implementation.tunables}
    places = [(f"arguments[{number}]", argument) for number, argument in enumerate(call.arguments)]
    places += [(f"keywords.{key}", argument) for key, argument in call.keywords.items()]
    for place, argument in places:
        yield from _argument(place, argument, known, inputs)
    yield from _results(kernel, call)
    if call.gradients is not None:
        yield from _gradients(call, inputs)


def gradient_problems(kernel: Kernel, declared: GradientOf) -> Iterator[str]:
    """What is wrong with a backward kernel's `gradient_of`."""
    inputs = [name for name, tensor in kernel.tensors.items() if tensor.role == "input"]
    outputs = [name for name, tensor in kernel.tensors.items() if tensor.role == "output"]
    for key, names in (("inputs", declared.inputs), ("upstream", declared.upstream)):
        for name in names:
            if name not in inputs:
                yield f"gradient_of.{key}: unknown input '{name}' {hint(name, inputs)}"
    if set(declared.inputs) & set(declared.upstream):
        yield "gradient_of: an input is either the forward's or an upstream gradient"
    if len(declared.inputs) != len(outputs):
        wanted = ", ".join(outputs)
        yield f"gradient_of.inputs: expected one for each output ({wanted}), got {len(declared.inputs)}"
    if kernel.tolerance.magnitude != DERIVED:
        yield f"gradient_of: needs tolerance.magnitude: {DERIVED}, got '{kernel.tolerance.magnitude}'"


def _argument(place: str, argument: Argument, known: set[str], inputs: tuple[str, ...]) -> Iterator[str]:
    match argument:
        case str() if argument not in known:
            names = hint(argument, sorted(known))
            yield f"{place}: unknown name '{argument}' {names}; a string is {{literal: …}}"
        case Given(copy=str(name)) if name not in inputs:
            yield f"{place}.copy: unknown input '{name}' {hint(name, inputs)}"


def _results(kernel: Kernel, call: Call) -> Iterator[str]:
    outputs = [name for name, tensor in kernel.tensors.items() if tensor.role == "output"]
    for number, name in enumerate(call.results):
        if name is not None and name not in outputs:
            yield f"results[{number}]: unknown output '{name}' {hint(name, outputs)}"
        elif name is not None and name in call.results[:number]:
            yield f"results[{number}]: '{name}' stands there twice"
    for name in outputs:
        if name not in call.results:
            yield f"results: the output '{name}' is missing"


def _gradients(call: Call, inputs: tuple[str, ...]) -> Iterator[str]:
    assert call.gradients is not None
    given = [argument.copy if isinstance(argument, Given) else argument for argument in call.arguments]
    for name in call.gradients.of:
        if name not in given:
            yield f"gradients.of: '{name}' is none of the arguments"
    for name in call.gradients.upstream:
        if name not in inputs:
            yield f"gradients.upstream: unknown input '{name}' {hint(name, inputs)}"
    if len(call.gradients.of) != len(call.results):
        yield (
            f"gradients.of: {len(call.gradients.of)} gradients for {len(call.results)} results,"
            " expected one for each"
        )
