"""T1, the description of a search space and its kernel, read as a RecordedSpace without results.

Schema: KernelTuner/kernel_tuner, `T1/1.0.0/input-schema.json`. Values are Python expressions there
(`[2**i for i in range(6)]`), conditions too: both are evaluated on their syntax tree, never by Python.
"""

from collections.abc import Mapping
from typing import Any

import simpleeval

from pipeline.interop.formats import json_files
from pipeline.interop.formats.format_registry import FileFormat, FormatFile
from pipeline.interop.formats.kernel_tuner_cache import problem_size, unit_of_time
from pipeline.records.configuration.kernel import Constraint, TunableValue
from pipeline.records.errors import FormatError, FormulaError
from pipeline.records.formula import names_in
from pipeline.records.search.recorded_space import RecordedArgument, RecordedSpace

TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "uint": (int,),
    "float": (int, float),
    "bool": (bool,),
    "string": (str,),
}
MOST = 10_000  # values of one tunable, and steps of one range

CANNOT = (
    *(simpleeval.InvalidExpression, ArithmeticError, AttributeError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)
"""What evaluating an expression may end with."""

_BITS = 63


def read_t1(file: FormatFile) -> RecordedSpace:
    """A T1 file as a space.

    Raises
    ------
    FormatError
        A part is missing or is of another kind, or an expression cannot be evaluated.
    """
    path, content = file.path, file.json
    place = f"{path}: ConfigurationSpace"
    space = json_files.mapping(json_files.part(content, "ConfigurationSpace", f"{path}: top level"), place)
    tunables: dict[str, tuple[TunableValue, ...]] = {}
    defaults: dict[str, TunableValue] = {}
    notes: list[str] = []
    declared = json_files.sequence(
        json_files.part(space, "TuningParameters", place), f"{place}.TuningParameters"
    )
    for number, each in enumerate(declared):
        where = f"{place}.TuningParameters[{number}]"
        parameter = json_files.mapping(each, where)
        name = json_files.text(json_files.part(parameter, "Name", where), f"{where}.Name")
        if name in tunables:  # Kernel Tuner takes the last one too
            notes.append(f"{name} is declared twice: the last declaration counts")
        tunables[name] = _values(parameter, where, notes)
        _take_default(name, parameter, tunables[name], (defaults, notes))
    constants = _constants(content, tunables)
    kernel = json_files.mapping(content.get("KernelSpecification", {}), f"{path}: KernelSpecification")
    general = json_files.mapping(content.get("General", {}), f"{path}: General")
    return RecordedSpace(
        source=path.name,
        format="T1",
        kernel=json_files.optional_text(kernel.get("KernelName") or general.get("BenchmarkName")),
        device=_device(kernel),
        language=json_files.optional_text(kernel.get("Language")),
        problem=problem_size(kernel.get("ProblemSize")),
        arguments=_arguments(kernel, f"{path}: KernelSpecification.Arguments"),
        unit=unit_of_time(str(general["TimeUnit"]), f"{path}: General.TimeUnit")
        if "TimeUnit" in general
        else None,
        tunables=tunables,
        defaults=defaults,
        constraints=_constraints(space, {*tunables, *constants}, place),
        constants=constants,
        notes=tuple(notes),
    )


def _values(parameter: Mapping[str, Any], place: str, notes: list[str]) -> tuple[TunableValue, ...]:
    values = json_files.part(parameter, "Values", place)
    if isinstance(values, str):
        try:
            values = listed_values(values)
        except FormulaError as error:
            raise FormatError(f"{place}.Values: {error}") from None
    kind = parameter.get("Type")
    types = TYPES.get(kind) if isinstance(kind, str) else None
    if types is None:
        raise FormatError(f"{place}.Type: expected one of {', '.join(TYPES)}, got {json_files.shown(kind)}")
    found = json_files.sequence(values, f"{place}.Values")
    if not found:
        raise FormatError(f"{place}.Values: expected at least one value, got none")
    if kind in ("int", "uint") and any(isinstance(value, float) for value in found):
        notes.append(f"{parameter['Name']} is declared {kind} and has values with a fraction")
        types = TYPES["float"]
    for value in found:
        fits = isinstance(value, types) and (kind == "bool" or not isinstance(value, bool))
        if not fits or (kind == "uint" and value < 0):
            raise FormatError(
                f"{place}.Values: expected values of type {kind}, got {json_files.shown(value)}"
            )
        json_files.tunable_value(value, f"{place}.Values")
    if len({(type(value), value) for value in found}) < len(found):
        raise FormatError(f"{place}.Values: expected each value once, got {json_files.shown(found)}")
    return tuple(found)


def _take_default(
    name: str,
    parameter: Mapping[str, Any],
    values: tuple[TunableValue, ...],
    into: tuple[dict[str, TunableValue], list[str]],
) -> None:
    defaults, notes = into
    default = parameter.get("Default")
    if isinstance(default, list) and len(default) == 1:  # gemm's GEMMK
        default = default[0]
    for value in values:
        if value == default and isinstance(value, bool) == isinstance(default, bool):
            defaults[name] = value
            return
    if default is not None:
        notes.append(f"the default of {name}, {json_files.shown(default)}, is not among its values: left out")


def _constants(content: Mapping[str, Any], tunables: Mapping[str, object]) -> dict[str, TunableValue]:
    """Numbers of the benchmark's own settings (`MAX_THREADS`): a condition may name them."""
    settings = content.get("BenchmarkConfig")
    return {
        name: value
        for name, value in (settings.items() if isinstance(settings, dict) else ())
        if isinstance(value, bool | int | float | str) and name not in tunables
    }


def _device(kernel: Mapping[str, Any]) -> str | None:
    device = kernel.get("Device")
    return json_files.optional_text(device.get("Name")) if isinstance(device, dict) else None


def _arguments(kernel: Mapping[str, Any], place: str) -> tuple[RecordedArgument, ...]:
    found = []
    for number, each in enumerate(json_files.sequence(kernel.get("Arguments") or [], place)):
        argument = json_files.mapping(each, f"{place}[{number}]")
        size = argument.get("Size")
        found.append(
            RecordedArgument(
                name=str(argument.get("Name", number)),
                type=json_files.text(
                    json_files.part(argument, "Type", f"{place}[{number}]"), f"{place}[{number}].Type"
                ),
                memory=json_files.optional_text(argument.get("MemoryType")),
                access=json_files.optional_text(argument.get("AccessType")),
                size=size if isinstance(size, int | str) else None,
            )
        )
    return tuple(found)


def _constraints(space: Mapping[str, Any], known: set[str], place: str) -> tuple[Constraint, ...]:
    found = []
    for number, each in enumerate(json_files.sequence(space.get("Conditions") or [], f"{place}.Conditions")):
        where = f"{place}.Conditions[{number}]"
        condition = json_files.mapping(each, where)
        rule = json_files.text(json_files.part(condition, "Expression", where), f"{where}.Expression").strip()
        try:
            unknown = sorted(names_in(rule) - known)
        except FormulaError as error:
            raise FormatError(f"{where}.Expression: {error}") from None
        if unknown:
            names = json_files.listed(sorted(known))
            raise FormatError(f"{where}.Expression: expected names of tunables ({names}), got '{unknown[0]}'")
        found.append(Constraint(rule=rule, reason=f"condition {number + 1} of the file"))
    return tuple(found)


def listed_values(expression: str) -> list[object]:
    """The values that an expression lists, in its order.

    Raises
    ------
    FormulaError
        Not such an expression, or not a list; the text names it.
    """
    evaluator = simpleeval.EvalWithCompoundTypes(functions=dict(FUNCTIONS), names={})
    evaluator.functions = dict(FUNCTIONS)  # without `dict`, `set` and `tuple`, which it adds
    try:
        values = evaluator.eval(expression.strip())
    except simpleeval.NameNotDefined as error:
        raise FormulaError(f"`{expression}`: expected values, got the unknown name '{error.name}'") from None
    except simpleeval.FunctionNotDefined as error:
        known = ", ".join(sorted(FUNCTIONS))
        raise FormulaError(f"`{expression}`: unknown function '{error.func_name}' (known: {known})") from None
    except SyntaxError as error:
        raise FormulaError(f"`{expression}`: not an expression: {error.msg}") from None
    except CANNOT as error:
        raise FormulaError(f"`{expression}`: cannot be evaluated: {error}") from None
    if not isinstance(values, list | tuple | range):
        raise FormulaError(f"`{expression}`: expected a list of values, got {values!r:.60}")
    if len(values) > MOST:
        raise FormulaError(f"`{expression}`: expected at most {MOST} values, got {len(values)}")
    if any(isinstance(value, int) and value.bit_length() > _BITS for value in values):
        raise FormulaError(f"`{expression}`: a value does not fit {_BITS + 1} bits")
    return list(values)


def _steps(*bounds: int) -> range:
    steps = range(*bounds)
    if len(steps) > MOST:
        raise ValueError(f"range of more than {MOST} steps")
    return steps


FUNCTIONS = {
    **{"range": _steps, "list": list, "len": len, "min": min, "max": max, "sum": sum, "sorted": sorted},
    **{"abs": abs, "int": int, "float": float, "round": round, "bool": bool, "str": str},
}


FORMAT = FileFormat(
    name="T1",
    description="a search space",
    recognizes=lambda file: file.has("ConfigurationSpace"),
    read=read_t1,
)
