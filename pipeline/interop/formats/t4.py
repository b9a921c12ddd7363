"""T4, the results of a tuner, read as a RecordedSpace; and written, for results of ours.

Schema: KernelTuner/kernel_tuner, `T4/1.0.0/results-schema.json`. Known quirks: `miliseconds` in old files;
`times.compilation` where the schema says `compilation_time`; `correctness` 1 of what did not run.
"""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pipeline.interop.formats import json_files
from pipeline.interop.formats.format_registry import FileFormat, FormatFile
from pipeline.interop.formats.kernel_tuner_cache import (
    INVALIDITIES,
    MILLISECONDS,
    PER_SECOND,
    invalidity_of,
    joules,
    marked,
    median_of,
    problem_size,
    unit_of_time,
    with_values,
)
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Outcome
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.store.atomic import write_atomic

VERSION = "1.0.0"
COSTS = {
    "compilation_time": "compile_seconds",
    "compilation": "compile_seconds",
    "benchmark": "benchmark_seconds",
    "validation": "verify_seconds",
    "framework": "framework_seconds",
    "search_algorithm": "search_seconds",
}
"""What they are called there -> here."""


def read_t4(file: FormatFile) -> RecordedSpace:
    """A T4 file as a space whose tunables have the values that occur in the results.

    Raises
    ------
    FormatError
        A part is missing or is of another kind.
    """
    path, content = file.path, file.json
    _check_version(content, path)
    unit, notes = _unit(content, path)
    entries = json_files.sequence(content["results"], f"{path}: results")
    objective = _objective(entries)
    results: list[RecordedResult] = []
    for number, each in enumerate(entries):
        place = f"{path}: results[{number}]"
        results.append(_result(json_files.mapping(each, place), unit, objective, place))
        if results[-1].tunables.keys() != results[0].tunables.keys():
            expected, got = json_files.listed(results[0].tunables), json_files.listed(results[-1].tunables)
            raise FormatError(f"{place}.configuration: expected {expected} as in results[0], got {got}")
    names = results[0].tunables if results else {}
    values, _ = with_values(dict.fromkeys(names, ()), (each.tunables for each in results))
    return RecordedSpace(
        source=path.name,
        format="T4",
        kernel=_said(content, "kernel"),
        device=_said(content, "device"),
        problem=problem_size(content.get("metadata", {}).get("problem")),
        unit=unit,
        objective=objective,
        tunables=values,
        results=tuple(results),
        notes=notes,
    )


def write_t4(space: RecordedSpace, path: Path) -> None:
    """Write the results of a space, whole or not at all.

    Raises
    ------
    FormatError
        They would not be T4.
    StoreError
        The file cannot be written.
    """
    content = t4_of(space)
    check_t4(content, str(path))
    write_atomic(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def t4_of(space: RecordedSpace) -> dict[str, Any]:
    """The content of a T4 file, in milliseconds, as other tools of the kind read it.

    The schema leaves `metadata` open: ours says of which kernel, device and size of the problem; T4 itself
    does not.
    """
    named = (("kernel", space.kernel), ("device", space.device), ("problem", list(space.problem)))
    said = {key: value for key, value in named if value}
    return {
        "schema_version": VERSION,
        "metadata": {"timeunit": MILLISECONDS, **said},
        "results": [_entry(result, space.objective) for result in space.results],
    }


def check_t4(content: dict[str, Any], name: str) -> None:
    """Compare with the published schema.

    Raises
    ------
    FormatError
        The first thing that it does not allow.
    """
    import jsonschema

    schema = resources.files("pipeline.interop.formats").joinpath(f"schemas/T4-{VERSION}-results.json")
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    for error in validator.iter_errors(content):
        raise FormatError(f"{name}: {error.json_path}: not T4 {VERSION}: {error.message:.100}")


def _check_version(content: Mapping[str, Any], path: Path) -> None:
    version = content.get("schema_version", VERSION)
    if not isinstance(version, str) or version.partition(".")[0] != VERSION.partition(".")[0]:
        raise json_files.unexpected(f"{path}: schema_version", f"{VERSION} or a later 1.x", version)


def _unit(content: Mapping[str, Any], path: Path) -> tuple[str, tuple[str, ...]]:
    metadata = json_files.mapping(content.get("metadata", {}), f"{path}: metadata")
    for key in ("timeunit", "time_unit", "TimeUnit"):
        if key in metadata:
            place = f"{path}: metadata.{key}"
            return unit_of_time(json_files.text(metadata[key], place), place), ()
    return MILLISECONDS, ("no unit of time is given: taken as milliseconds, which Kernel Tuner writes",)


def _said(content: Mapping[str, Any], key: str) -> str | None:
    return json_files.optional_text(content.get("metadata", {}).get(key))


def _objective(entries: list[Any]) -> str:
    for entry in entries:
        objectives = entry.get("objectives") if isinstance(entry, dict) else None
        if isinstance(objectives, list) and objectives:
            return str(objectives[0])
    return "time"


def _result(entry: Mapping[str, Any], unit: str, objective: str, place: str) -> RecordedResult:
    configuration = json_files.mapping(
        json_files.part(entry, "configuration", place), f"{place}.configuration"
    )
    tunables: dict[str, TunableValue] = {
        name: json_files.tunable_value(value, f"{place}.configuration.{name}")
        for name, value in configuration.items()
    }
    times = json_files.mapping(json_files.part(entry, "times", place), f"{place}.times")
    common: dict[str, Any] = {
        field: json_files.number(times[key], f"{place}.times.{key}") / PER_SECOND[unit]
        for key, field in COSTS.items()
        if times.get(key) is not None
    }
    common["timestamp"] = json_files.optional_text(entry.get("timestamp"))
    measured = _measured(entry, f"{place}.measurements")
    failure = _failure(entry, measured, objective, place)
    if failure is not None:
        return RecordedResult(tunables=tunables, outcome=failure[0], reason=failure[1], **common)
    runtimes = json_files.sequence(times.get("runtimes") or [], f"{place}.times.runtimes")
    samples = tuple(
        json_files.seconds(each, f"{place}.times.runtimes") / PER_SECOND[unit] for each in runtimes
    )
    seconds = _time(measured, unit, f"{place}.measurements")
    numbers = {
        name: value for name, (value, _) in measured.items() if name != "time" and json_files.is_number(value)
    }
    return RecordedResult(
        tunables=tunables,
        outcome=Outcome.PASSED,
        samples=samples,
        seconds=seconds,
        median_seconds=median_of(samples, seconds),
        joules=joules(numbers),
        measurements=numbers,
        **common,
    )


def _measured(entry: Mapping[str, Any], place: str) -> dict[str, tuple[Any, str]]:
    """Name -> value and unit."""
    found = {}
    for number, each in enumerate(json_files.sequence(entry.get("measurements") or [], place)):
        one = json_files.mapping(each, f"{place}[{number}]")
        name = json_files.text(json_files.part(one, "name", f"{place}[{number}]"), f"{place}[{number}].name")
        found[name] = (one.get("value"), str(one.get("unit") or ""))
    return found


def _failure(
    entry: Mapping[str, Any], measured: Mapping[str, tuple[Any, str]], objective: str, place: str
) -> tuple[Outcome, str] | None:
    word = json_files.part(entry, "invalidity", place)
    if word != "correct":
        outcome = INVALIDITIES.get(word) if isinstance(word, str) else None
        if outcome is None:
            known = ", ".join(("correct", *INVALIDITIES))
            raise FormatError(f"{place}.invalidity: expected one of {known}, got {json_files.shown(word)}")
        said = marked(measured[objective][0]) if objective in measured else None
        return _ours(measured) or (outcome, said[1] if said else word)
    if "correctness" in entry and not json_files.number(entry["correctness"], f"{place}.correctness"):
        return Outcome.WRONG_VALUE, "correctness 0"
    return marked(measured[objective][0]) if objective in measured else None


def _ours(measured: Mapping[str, tuple[Any, str]]) -> tuple[Outcome, str] | None:
    """The outcome in our words, where we wrote the file."""
    outcome, reason = measured.get("outcome", ("", ""))[0], measured.get("reason", ("", ""))[0]
    known = isinstance(outcome, str) and outcome in list(Outcome) and outcome != Outcome.PASSED
    return (Outcome(outcome), str(reason)) if known else None


def _time(measured: Mapping[str, tuple[Any, str]], unit: str, place: str) -> float | None:
    if "time" not in measured:
        return None
    value, own = measured["time"]
    if own:
        unit = unit_of_time(own, f"{place}: unit of time")
    return json_files.seconds(value, f"{place}: time") / PER_SECOND[unit]


def _entry(result: RecordedResult, objective: str) -> dict[str, Any]:
    scale = PER_SECOND[MILLISECONDS]
    times: dict[str, Any] = {}
    for key, field in COSTS.items():
        seconds = getattr(result, field)
        if seconds is not None:
            times[key] = seconds * scale  # both `compilation` and `compilation_time`: tools read the former
    if result.outcome is Outcome.PASSED:
        times["runtimes"] = [sample * scale for sample in result.samples]
    measurements = [{"name": name, "value": value, "unit": ""} for name, value in result.measurements.items()]
    if result.seconds is not None:
        measurements.insert(0, {"name": "time", "value": result.seconds * scale, "unit": MILLISECONDS})
    if result.joules is not None and joules(result.measurements) is None:
        measurements.append({"name": "energy", "value": result.joules, "unit": "J"})
    if result.reason is not None:
        measurements.append({"name": "outcome", "value": result.outcome.value, "unit": ""})
        measurements.append({"name": "reason", "value": result.reason, "unit": ""})
    entry: dict[str, Any] = {
        "configuration": dict(result.tunables),
        "times": times,
        "invalidity": invalidity_of(result.outcome),
        "correctness": 1 if result.outcome is Outcome.PASSED else 0,
        "measurements": measurements,
        "objectives": [objective],
    }
    if result.timestamp is not None:
        entry["timestamp"] = result.timestamp
    return entry


FORMAT = FileFormat(
    name="T4",
    description="results of a tuner",
    recognizes=lambda file: file.has("results"),
    read=read_t4,
)
