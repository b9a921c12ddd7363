"""Kernel Tuner's cache files, read as a RecordedSpace.

A cache grows while Kernel Tuner runs: a file whose run ended early lacks its last two brackets, or ends
within an entry. Times are milliseconds. The layout: Kernel Tuner's documentation, `process_cache`.
"""

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.interop.formats import json_files
from pipeline.interop.formats.format_registry import FileFormat, FormatFile
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Outcome
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace

MILLISECONDS = "milliseconds"
PER_SECOND = {"seconds": 1.0, MILLISECONDS: 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
SPELLINGS = {
    **{name: name for name in PER_SECOND},
    **{name.removesuffix("s"): name for name in PER_SECOND},
    **{"s": "seconds", "sec": "seconds", "ms": MILLISECONDS, "us": "microseconds", "µs": "microseconds"},
    **{"ns": "nanoseconds", "miliseconds": MILLISECONDS, "milisecond": MILLISECONDS},
}
"""`miliseconds` is what Kernel Tuner wrote until it was corrected."""


def unit_of_time(word: str, place: str) -> str:
    """The unit, by its full name.

    Raises
    ------
    FormatError
        No unit of time that is known.
    """
    unit = SPELLINGS.get(word.strip().lower())
    if unit is None:
        raise FormatError(f"{place}: expected a unit of time ({', '.join(PER_SECOND)}), got '{word}'")
    return unit


MARKERS = {
    "InvalidConfig": Outcome.PRUNED,
    "CompilationFailedConfig": Outcome.COMPILE_ERROR,
    "RuntimeFailedConfig": Outcome.LAUNCH_ERROR,
    "ErrorConfig": Outcome.LAUNCH_ERROR,
    "InfinityTime": Outcome.LAUNCH_ERROR,
}
"""What Kernel Tuner writes in place of a time; the last two do not say what failed."""

NO_TIME = 1e20  # milliseconds: what Kernel Tuner's versions before 0.4 wrote in place of a time

INVALIDITIES = {
    "timeout": Outcome.TIMEOUT,
    "compile": Outcome.COMPILE_ERROR,
    "runtime": Outcome.LAUNCH_ERROR,
    "correctness": Outcome.WRONG_VALUE,
    "constraints": Outcome.PRUNED,
}
"""T4's words other than `correct`."""

_WRONG = (
    *(Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.WRONG_VALUE, Outcome.UNWRITTEN_OUTPUT),
    *(Outcome.OUT_OF_BOUNDS, Outcome.INPUT_MUTATED, Outcome.INPUT_REUSED, Outcome.NONDETERMINISTIC),
    Outcome.TAMPERED,
)


def marked(value: object) -> tuple[Outcome, str] | None:
    """The failure that stands in place of a measured value; None where it is a value."""
    if isinstance(value, str):
        outcome = MARKERS.get(value)
        return None if outcome is None else (outcome, value)
    if value is None:
        return Outcome.LAUNCH_ERROR, "no value"
    if isinstance(value, float) and (math.isnan(value) or abs(value) >= NO_TIME):
        return Outcome.LAUNCH_ERROR, f"{value:g} in place of a value"
    return None


def invalidity_of(outcome: Outcome) -> str:
    """T4's word for an outcome of ours: it has five words for failures, the measurements keep ours."""
    if outcome is Outcome.PASSED:
        return "correct"
    if outcome in _WRONG:
        return "correctness"
    for word, known in INVALIDITIES.items():
        if outcome is known:
            return word
    return "runtime"


IN_A_SECOND = PER_SECOND[MILLISECONDS]
COSTS = {
    "compile_time": "compile_seconds",
    "benchmark_time": "benchmark_seconds",
    "verification_time": "verify_seconds",
    "framework_time": "framework_seconds",
    "strategy_time": "search_seconds",
}
"""What they are called there -> here."""


def read_cache(file: FormatFile) -> RecordedSpace:
    """A cache file as a space with its results.

    Raises
    ------
    FormatError
        A part is missing or is of another kind.
    """
    path = file.path
    content, notes = (file.content, ()) if file.content is not None else (_closed(file) or (file.json, ()))
    json_files.whole_characters(file.text, content, path)
    entries = json_files.mapping(json_files.part(content, "cache", f"{path}: top level"), f"{path}: cache")
    names = _names(content, path)
    objective = content.get("objective", "time")
    if not isinstance(objective, str):
        objective = next((str(each) for each in json_files.sequence(objective, f"{path}: objective")), "time")
    results = [
        _result(
            json_files.mapping(entry, f"{path}: cache['{key}']"), names, objective, f"{path}: cache['{key}']"
        )
        for key, entry in entries.items()
    ]
    declared = json_files.mapping(content.get("tune_params", {}), f"{path}: tune_params")
    tunables = {name: _declared(declared.get(name, []), f"{path}: tune_params.{name}") for name in names}
    values, amended = with_values(tunables, (each.tunables for each in results))
    return RecordedSpace(
        source=path.name,
        format="cache",
        kernel=json_files.optional_text(content.get("kernel_name")),
        device=json_files.optional_text(content.get("device_name")),
        problem=problem_size(content.get("problem_size")),
        unit=MILLISECONDS,
        objective=objective,
        tunables=values,
        results=tuple(results),
        notes=(*notes, *(amended if declared else ())),
    )


def _closed(file: FormatFile) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """The object of a file that was cut off, closed, and a note that says so; None if that does not help."""
    open_end = file.text.rstrip().removesuffix(",")
    last = open_end.rfind("}")
    attempts = (
        (f"{open_end}}}}}", "the file was not closed: its run ended early"),
        (
            f"{open_end[: last + 1]}}}}}",
            "the file ends within an entry, which is left out: its run ended early",
        ),
    )
    for attempt, note in attempts if '"cache"' in file.text else ():
        try:
            return json_files.mapping(json.loads(attempt), f"{file.path}: top level"), (note,)
        except (ValueError, RecursionError):
            continue
    return None


def problem_size(value: object) -> tuple[int, ...]:
    """The size of the problem, where it is made of numbers."""
    sizes = value if isinstance(value, list) else [value]
    whole = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool)]
    return tuple(whole) if len(whole) == len(sizes) else ()


def with_values(
    declared: Mapping[str, Sequence[TunableValue]], points: Iterable[Mapping[str, TunableValue]]
) -> tuple[dict[str, tuple[TunableValue, ...]], tuple[str, ...]]:
    """The declared values and, after them, those that only the results have; what was so amended."""
    values = {name: {_identity(value): value for value in known} for name, known in declared.items()}
    for point in points:
        for name, value in point.items():
            values[name].setdefault(_identity(value), value)
    added = [name for name, known in values.items() if len(known) > len(declared[name])]
    notes = (f"results have values that are not declared: of {', '.join(added)}",) if added else ()
    return {name: tuple(known.values()) for name, known in values.items()}, notes


def _identity(value: TunableValue) -> tuple[bool, TunableValue]:
    return isinstance(value, bool), value  # 1 and true are two values of a tunable


def median_of(samples: Sequence[float], otherwise: float | None) -> float | None:
    """Median of the samples, or what is known instead."""
    return statistics.median(samples) if samples else otherwise


def _names(content: Mapping[str, Any], path: Path) -> list[str]:
    if "tune_params_keys" in content:
        names = json_files.sequence(content["tune_params_keys"], f"{path}: tune_params_keys")
        return [json_files.text(name, f"{path}: tune_params_keys") for name in names]
    return list(
        json_files.mapping(
            json_files.part(content, "tune_params", f"{path}: top level"), f"{path}: tune_params"
        )
    )


def _declared(values: object, place: str) -> list[TunableValue]:
    return [json_files.tunable_value(value, place) for value in json_files.sequence(values, place)]


def _result(entry: Mapping[str, Any], names: Sequence[str], objective: str, place: str) -> RecordedResult:
    tunables = {
        name: json_files.tunable_value(json_files.part(entry, name, place), f"{place}.{name}")
        for name in names
    }
    common = {
        field: entry[key] / IN_A_SECOND
        for key, field in COSTS.items()
        if json_files.is_number(entry.get(key))
    }
    stamp = json_files.optional_text(entry.get("timestamp"))
    failure = _failure(entry, objective, place)
    if failure is not None:
        outcome, reason = failure
        return RecordedResult(tunables=tunables, outcome=outcome, reason=reason, timestamp=stamp, **common)
    samples = tuple(_seconds(entry.get("times") or [], f"{place}.times"))
    seconds = json_files.seconds(entry["time"], f"{place}.time") / IN_A_SECOND if "time" in entry else None
    measurements = {
        key: value
        for key, value in entry.items()
        if json_files.is_number(value) and key not in tunables and key not in COSTS and key != "time"
    }
    return RecordedResult(
        tunables=tunables,
        outcome=Outcome.PASSED,
        samples=samples,
        seconds=seconds,
        median_seconds=median_of(samples, seconds),
        joules=joules(measurements),
        measurements=measurements,
        timestamp=stamp,
        **common,
    )


def joules(measurements: Mapping[str, float]) -> float | None:
    """Energy of one call: Kernel Tuner's observers give it in joules, under a name that ends so."""
    return next(
        (value for key, value in measurements.items() if key == "energy" or key.endswith("_energy")), None
    )


def _failure(entry: Mapping[str, Any], objective: str, place: str) -> tuple[Outcome, str] | None:
    if "__error__" in entry:
        return marked(entry["__error__"]) or (Outcome.LAUNCH_ERROR, str(entry["__error__"]))
    found = [key for key in (objective, "time") if key in entry]
    if not found:
        raise FormatError(f"{place}: expected the key '{objective}', got {json_files.listed(entry)}")
    for key in found:
        failure = marked(entry[key])
        if failure is not None:
            return failure
        json_files.number(entry[key], f"{place}.{key}")
    return None


def _seconds(times: object, place: str) -> Iterable[float]:
    for value in json_files.sequence(times, place):
        yield json_files.seconds(value, place) / IN_A_SECOND


FORMAT = FileFormat(
    name="cache",
    description="a cache file of Kernel Tuner",
    recognizes=lambda file: file.has("cache") or (file.content is None and _closed(file) is not None),
    read=read_cache,
)
