"""Check what a schema cannot say: names that must exist elsewhere, defaults among their values, formulas."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pipeline.backends import registry as backends
from pipeline.backends.cuda.geometry import AXES, formulas
from pipeline.plan.config.calls import CALLING, call_problems, gradient_problems
from pipeline.plan.config.groups import hint
from pipeline.plan.config.search_meaning import search_problems
from pipeline.records.errors import ConfigError, FormulaError
from pipeline.records.experiment import Experiment
from pipeline.records.formula import names_in
from pipeline.records.hardware import Hardware
from pipeline.records.kernel import DERIVED, Cost, Implementation, Kernel, Tensor, Tunable, TunableValue
from pipeline.records.optimization import Optimization
from pipeline.records.record import Record
from pipeline.records.search import Search
from pipeline.records.settings import BASELINES
from pipeline.records.workload import Workload

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
    if implementation.backend not in backends.NAMES:
        name = implementation.backend
        yield f"{path}.backend: unknown backend '{name}' {hint(name, backends.NAMES)}"
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
