"""What a call costs apart from time, and the state of the device meanwhile: energy, memory, clock, heat."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import Metric, of_profile
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Conditions, Energy, Memory, Profiled


def _energy(
    name: str, meaning: str, unit: str, value: Callable[[Profiled, Energy], object], mlflow: str
) -> Metric:
    def find(run: Profiled) -> object:
        return value(run, run.energy) if run.energy else None

    return Metric(name=name, type="double", unit=unit, meaning=meaning, value=of_profile(find), mlflow=mlflow)


def _memory(name: str, meaning: str, value: Callable[[Memory], object], mlflow: str) -> Metric:
    def find(run: Profiled) -> object:
        return value(run.memory) if run.memory else None

    return Metric(
        name=name,
        type="int64",
        unit="B",
        meaning=meaning,
        value=of_profile(find),
        mlflow=f"memory/{mlflow}",
    )


def _condition(name: str, meaning: str, unit: str, value: Callable[[Conditions], object]) -> Metric:
    return Metric(
        name=name,
        type="double",
        unit=unit,
        meaning=meaning,
        value=_of_conditions(value),
        mlflow=f"device/{name}",
    )


def _of_conditions(value: Callable[[Conditions], object]) -> Callable[[Result], object]:
    return of_profile(lambda run: value(run.conditions) if run.conditions else None)


def _unmeasured(run: Profiled) -> object:
    return "; ".join(f"{absent.quantity}: {absent.reason}" for absent in run.unmeasured) or None


ENERGY_AND_MEMORY = (
    _energy(
        "energy_joules",
        "Energy per call by the device's counter, idle power included",
        "J",
        lambda _, energy: energy.joules,
        "energy_joules",
    ),
    _energy(
        "mean_watts",
        "Mean power while the energy was counted",
        "W",
        lambda _, energy: energy.watts,
        "energy/mean_watts",
    ),
    _energy(
        "energy_delay",
        "Energy per call times its median time",
        "J·s",
        lambda run, energy: energy.joules * run.time.value,
        "energy/delay_js",
    ),
    _memory(
        "peak_device_bytes",
        "Peak of torch's device allocator in a warm call, beyond what was allocated before it",
        lambda memory: memory.steady.device_bytes,
        "device_bytes",
    ),
    _memory(
        "peak_host_bytes",
        "Growth of the process's peak resident size in a warm call",
        lambda memory: memory.steady.host_bytes,
        "host_bytes",
    ),
    _memory(
        "first_call_device_bytes",
        "As peak_device_bytes, in the first call",
        lambda memory: memory.first.device_bytes,
        "first_call_device_bytes",
    ),
    _memory(
        "first_call_host_bytes",
        "As peak_host_bytes, in the first call",
        lambda memory: memory.first.host_bytes,
        "first_call_host_bytes",
    ),
    _condition("clock_mhz_low", "Lowest clock that was sampled", "MHz", lambda seen: seen.clock_mhz_low),
    _condition("clock_mhz_high", "Highest clock that was sampled", "MHz", lambda seen: seen.clock_mhz_high),
    _condition("temperature_celsius", "Highest temperature", "°C", lambda seen: seen.temperature_celsius),
    _condition("sampled_watts", "Mean power while the time was measured", "W", lambda seen: seen.watts),
    Metric(
        name="throttled",
        type="string",
        meaning="What slowed the clock meanwhile, as the driver names it; empty if nothing did",
        value=_of_conditions(lambda seen: ", ".join(seen.throttled)),
    ),
    _condition(
        "stolen", "Share of the machine's CPU time that its host took", "share", lambda seen: seen.stolen
    ),
    Metric(
        name="condition_samples",
        type="int64",
        meaning="Number of samples of clock, temperature and power",
        value=_of_conditions(lambda seen: seen.samples),
        mlflow="device/condition_samples",
    ),
    Metric(
        name="unmeasured",
        type="string",
        meaning="Quantities that could not be measured, and why",
        value=of_profile(_unmeasured),
    ),
)
