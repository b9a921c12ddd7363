"""The output of KTT, the Kernel Tuning Toolkit, read as a RecordedSpace.

One duration for each configuration: KTT runs it once. Layout: KTT 2.1, `Metadata` and `Results`.
"""

from collections.abc import Mapping
from typing import Any

from pipeline.interop.formats import json_files
from pipeline.interop.formats.format_registry import FileFormat, FormatFile
from pipeline.interop.formats.kernel_tuner_cache import PER_SECOND, unit_of_time, with_values
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Outcome
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace

STATUSES = {
    "Ok": Outcome.PASSED,
    "ComputationFailed": Outcome.LAUNCH_ERROR,
    "ValidationFailed": Outcome.WRONG_VALUE,
    "CompilationFailed": Outcome.COMPILE_ERROR,
    "DeviceLimitsExceeded": Outcome.PRUNED,
}


def read_ktt(file: FormatFile) -> RecordedSpace:
    """A file of results; its tunables have the values that occur.

    Raises
    ------
    FormatError
        A part is missing or is of another kind.
    """
    path, content = file.path, file.json
    metadata = json_files.mapping(
        json_files.part(content, "Metadata", f"{path}: top level"), f"{path}: Metadata"
    )
    place = f"{path}: Metadata.TimeUnit"
    unit = unit_of_time(
        json_files.text(json_files.part(metadata, "TimeUnit", f"{path}: Metadata"), place), place
    )
    entries = json_files.sequence(content["Results"], f"{path}: Results")
    results: list[RecordedResult] = []
    for number, each in enumerate(entries):
        place = f"{path}: Results[{number}]"
        results.append(_result(json_files.mapping(each, place), PER_SECOND[unit], place))
        if results[-1].tunables.keys() != results[0].tunables.keys():
            expected, got = json_files.listed(results[0].tunables), json_files.listed(results[-1].tunables)
            raise FormatError(f"{place}.Configuration: expected {expected} as in Results[0], got {got}")
    names = results[0].tunables if results else {}
    values, _ = with_values(dict.fromkeys(names, ()), (each.tunables for each in results))
    return RecordedSpace(
        source=path.name,
        format="KTT",
        kernel=json_files.optional_text(entries[0].get("KernelName")) if entries else None,
        device=json_files.optional_text(metadata.get("Device")),
        unit=unit,
        tunables=values,
        results=tuple(results),
    )


def _result(entry: Mapping[str, Any], per_second: float, place: str) -> RecordedResult:
    tunables: dict[str, TunableValue] = {}
    configuration = json_files.sequence(
        json_files.part(entry, "Configuration", place), f"{place}.Configuration"
    )
    for number, each in enumerate(configuration):
        where = f"{place}.Configuration[{number}]"
        pair = json_files.mapping(each, where)
        name = json_files.text(json_files.part(pair, "Name", where), f"{where}.Name")
        tunables[name] = json_files.tunable_value(json_files.part(pair, "Value", where), f"{where}.Value")
    status = json_files.text(json_files.part(entry, "Status", place), f"{place}.Status")
    if status not in STATUSES:
        raise FormatError(f"{place}.Status: expected one of {', '.join(STATUSES)}, got '{status}'")
    spent = json_files.number(entry.get("TotalOverhead", 0), f"{place}.TotalOverhead") / per_second
    if status != "Ok":
        outcome = STATUSES[status]
        return RecordedResult(tunables=tunables, outcome=outcome, reason=status, framework_seconds=spent)
    total = json_files.part(entry, "TotalDuration", place)
    seconds = json_files.seconds(total, f"{place}.TotalDuration") / per_second
    return RecordedResult(
        tunables=tunables,
        outcome=Outcome.PASSED,
        samples=(seconds,),
        seconds=seconds,
        median_seconds=seconds,
        framework_seconds=spent,
    )


FORMAT = FileFormat(
    name="KTT",
    description="output of the Kernel Tuning Toolkit",
    recognizes=lambda file: file.has("Results"),
    read=read_ktt,
)
