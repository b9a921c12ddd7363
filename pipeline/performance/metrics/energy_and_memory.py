"""What a call cost besides time, and how the device was meanwhile: energy, memory, clock, heat."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.records.profiled import Conditions, Energy, Memory, Profiled


def _energy(name: str, meaning: str, unit: str, value: Callable[[Profiled, Energy], object]) -> Column:
    def find(run: Profiled) -> object:
        return value(run, run.energy) if run.energy else None

    return _column(name, "double", meaning, unit, find)


def _memory(name: str, meaning: str, value: Callable[[Memory], object]) -> Column:
    def find(run: Profiled) -> object:
        return value(run.memory) if run.memory else None

    return _column(name, "int64", meaning, "B", find)


def _condition(
    name: str, meaning: str, unit: str, value: Callable[[Conditions], object], kind: ColumnType = "double"
) -> Column:
    def find(run: Profiled) -> object:
        return value(run.conditions) if run.conditions else None

    return _column(name, kind, meaning, unit, find)


def _column(
    name: str, kind: ColumnType, meaning: str, unit: str, find: Callable[[Profiled], object]
) -> Column:
    return Column(
        name=name,
        type=kind,
        meaning=meaning,
        unit=unit,
        value=lambda result: find(result.profiled) if result.profiled else None,
    )


def _unmeasured(run: Profiled) -> object:
    return "; ".join(f"{absent.quantity}: {absent.reason}" for absent in run.unmeasured) or None


CONDITIONS = (
    _energy(
        "energy_joules",
        "Energy per call by the device's counter, idle power included",
        "J",
        lambda _, energy: energy.joules,
    ),
    _energy("mean_watts", "Mean power while the energy was counted", "W", lambda _, energy: energy.watts),
    _energy(
        "energy_delay",
        "Energy per call times its median time",
        "J·s",
        lambda run, energy: energy.joules * run.timing.median.value,
    ),
    _memory(
        "peak_device_bytes",
        "Peak of torch's device allocator in a warm call, beyond what was taken before it",
        lambda memory: memory.steady.device_bytes,
    ),
    _memory(
        "peak_host_bytes",
        "Growth of the process's peak resident size in a warm call",
        lambda memory: memory.steady.host_bytes,
    ),
    _memory(
        "first_call_device_bytes",
        "As peak_device_bytes, in the first call",
        lambda memory: memory.first.device_bytes,
    ),
    _memory(
        "first_call_host_bytes",
        "As peak_host_bytes, in the first call",
        lambda memory: memory.first.host_bytes,
    ),
    _condition("clock_mhz_low", "Lowest clock that was seen", "MHz", lambda seen: seen.clock_mhz_low),
    _condition("clock_mhz_high", "Highest clock that was seen", "MHz", lambda seen: seen.clock_mhz_high),
    _condition("temperature_celsius", "Highest temperature", "°C", lambda seen: seen.temperature_celsius),
    _condition("sampled_watts", "Mean power while the time was measured", "W", lambda seen: seen.watts),
    _condition(
        "throttled",
        "What slowed the clock meanwhile, as the driver names it; empty if nothing did",
        "",
        lambda seen: ", ".join(seen.throttled),
        "string",
    ),
    _condition(
        "stolen", "Share of the machine's CPU time that its host took", "share", lambda seen: seen.stolen
    ),
    _condition("condition_samples", "Readings behind these", "", lambda seen: seen.samples, "int64"),
    _column("unmeasured", "string", "Quantities that could not be measured, and why", "", _unmeasured),
)
