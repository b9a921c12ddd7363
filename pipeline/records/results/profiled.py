"""What profile measured of one variant."""

import math
from typing import Literal

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, lacking, require_all, require_none
from pipeline.records.results.variant import Variant


class LevelCeiling(Record, frozen=True, kw_only=True):
    """What one level of the device's memory reaches."""

    name: str
    """`L1`, `L2`, `L3`, `DRAM`."""
    capacity: int | None
    """Bytes; None for the last level."""
    bandwidth: float
    """Bytes per second of a copy (read + write) whose data lie in it."""


class Ceilings(Record, frozen=True, kw_only=True):
    """Measured on the device in use, in the same job."""

    copy_bandwidth: float
    """Bytes per second (read + write), array far larger than the last-level cache."""
    read_bandwidth: float | None = None
    """Bytes per second of reading alone, same array: more than copying on many devices."""
    triad_bandwidth: float | None = None
    """Bytes per second of a[i] = b[i] + s * c[i], same array, three arrays counted."""
    level: str | None = None
    """The nearest level of memory that holds the problem's data."""
    levels: tuple[LevelCeiling, ...] = ()
    """From the nearest to the last; with flushed caches only the last."""
    cache_bandwidth: float
    """What bounds this problem: bytes per second at its working set (a cache's, where it fits one) and at its
    mix of reads and writes."""
    matrix_flops: float
    """FLOP/s of the vendor library's matrix product in the workload's dtype."""
    vector_flops: float
    """FLOP/s of dependent-free fused multiply-adds, float32, or in the workload's dtype where that is wider
    or where the unit is faster in it."""
    launch_seconds: float | None = None
    """Time of a call that does nothing, back to back; of one in a graph, if the calls are recorded as one."""

    def peak(self, unit: str) -> float:
        """FLOP/s that bound the work of a unit.

        A library's product is no upper bound where there is no matrix unit, or no kernel for the dtype: the
        vector unit can do a product as well.
        """
        return self.vector_flops if unit == "vector" else max(self.matrix_flops, self.vector_flops)


Verdict = Literal["faster", "slower", "indistinguishable"]
Bound = Literal["memory", "compute", "latency"]
"""Which ceiling is the nearest: its bytes, its operations, or that a call takes time at all."""

RECORDED = "recorded"
"""Source of an energy that was read from a file of recorded results."""

_OF_A_TIMING = ("calls_per_batch", "setup_seconds", "first_call_seconds")
_OF_AN_ENERGY = ("watts", "seconds", "calls", "updates")
_OF_A_FORMULA = ("flops", "bytes", "roofline_share", "bound")


class ConfidenceInterval(Record, frozen=True, kw_only=True):
    """An estimate with its confidence interval (`pipeline.measure.statistics`, `.processes`)."""

    value: float
    low: float
    high: float
    confidence: float

    def inverse(self) -> "ConfidenceInterval":
        """One over it."""
        return ConfidenceInterval(
            value=1 / self.value, low=1 / self.high, high=1 / self.low, confidence=self.confidence
        )

    def scaled(self, factor: float) -> "ConfidenceInterval":
        """Times a positive factor."""
        return ConfidenceInterval(
            value=factor * self.value,
            low=factor * self.low,
            high=factor * self.high,
            confidence=self.confidence,
        )

    def over(self, other: "ConfidenceInterval") -> "ConfidenceInterval":
        """Ratio to an independent positive quantity: squares of the parts on a logarithmic scale add up."""
        ratio = self.value / other.value
        below = math.hypot(math.log(self.value / self.low), math.log(other.high / other.value))
        above = math.hypot(math.log(self.high / self.value), math.log(other.value / other.low))
        return ConfidenceInterval(
            value=ratio,
            low=ratio * math.exp(-below),
            high=ratio * math.exp(above),
            confidence=self.confidence,
        )


Launch = Literal["stream", "graph"]


class Timing(Record, frozen=True, kw_only=True):
    """Samples of one callable in steady state: seconds per call, one per batch, in the order taken."""

    samples: tuple[float, ...]
    processes: tuple[int, ...] = ()
    """How many of the samples each process gave, one process after the other; none where it was one."""
    median: ConfidenceInterval
    """Of several processes the geometric mean of their medians."""
    calls_per_batch: int | None = None
    """This and the next two are absent where the measurement was recorded elsewhere, and only there."""
    setup_seconds: float | None = None
    """Load, compile and allocate, before the first call."""
    first_call_seconds: float | None = None
    warmup_seconds: float | None = None
    """Untimed calls until the time no longer drifted, or until the warm-up was at its end."""
    host_seconds: float | None = None
    """Host's part of a call: arguments, checks, launch. GPU: until it is enqueued. CPU: until the kernel's
    code starts, where the backend can tell."""
    launch: Launch | None = None
    """How a device other than the host gets its work: call by call, or as a recorded graph."""
    latencies: tuple[float, ...] = ()
    """Seconds of each single call, where they were timed one by one (mode `server`)."""

    def __post_init__(self) -> None:
        """A measurement has all fields that accompany its samples, a recorded one none of them."""
        if self.processes and sum(self.processes) != len(self.samples):
            raise ValueError(f"processes of {self.processes} samples, and {len(self.samples)} samples")
        absent = lacking(self, _OF_A_TIMING)
        if absent and absent != _OF_A_TIMING:
            raise ValueError(f"a timing lacks {', '.join(absent)}: only a recorded one may be without")

    @property
    def in_one_process(self) -> bool:
        """Whether it was measured here, and where one process lies in memory may be some per cents of it."""
        return len(self.processes) < 2 and not lacking(self, _OF_A_TIMING)

    def process_of_each(self) -> list[int]:
        """In which process, from 0, each of the samples was taken."""
        counts = self.processes or (len(self.samples),)
        return [number for number, count in enumerate(counts) for _ in range(count)]

    def quantile(self, share: float) -> float:
        """Seconds that so large a share of the calls does not exceed; of the batches, where calls lack."""
        values = sorted(self.latencies or self.samples)
        place = share * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])


class Energy(Record, frozen=True, kw_only=True):
    """What the device's own counter says; absent where it has none."""

    joules: float
    """Per call, of the whole device, idle power included."""
    watts: float | None = None
    """Mean power while the calls ran. This and the next three are absent where it was recorded elsewhere."""
    seconds: float | None = None
    """Between the counter's first and last update that were seen."""
    calls: int | None = None
    """In these seconds."""
    updates: int | None = None
    """Of the counter in these seconds, the first one not counted: the more, the finer."""
    source: str
    """Which counter: `nvml`, `rapl:package`; `recorded` where a file of recorded measurements says so."""

    def __post_init__(self) -> None:
        """A value read from a counter has its power and the resolution of the counter."""
        if self.source == RECORDED:
            require_none(self, _OF_AN_ENERGY, "an energy")
        else:
            require_all(self, _OF_AN_ENERGY, f"an energy that {self.source} measured")


class Peak(Record, frozen=True, kw_only=True):
    """Peak memory of one call, in bytes beyond what was taken when it began; absent if it is not known."""

    device_bytes: int | None = None
    """Of torch's allocator (GPU)."""
    outside_bytes: int | None = None
    """Of the device past that allocator, by whatever the call has taken and still holds (GPU)."""
    host_bytes: int | None = None
    """Growth of the process's peak resident size."""


class Memory(Record, frozen=True, kw_only=True):
    """Peak memory of a call, inputs and preallocated outputs left out, and what the formula says."""

    first: Peak
    """Of the call that loads and compiles what it needs."""
    steady: Peak
    """Of a call after warm-up."""
    formula_bytes: float | None
    """Inputs and outputs, by the kernel's declaration; None of a model without one."""


class KernelCounters(Record, frozen=True, kw_only=True):
    """Counters of one launch."""

    kernel: str
    values: dict[str, float]


class Counters(Record, frozen=True, kw_only=True):
    """Hardware counters of one call; absent where the profiler or the kernel allows none."""

    tool: str
    """`perf_event`, `ncu`."""
    values: dict[str, float]
    """Name of the counter, as its tool calls it -> value per call; shares of several launches are weighted by
    their time."""
    kernels: tuple[KernelCounters, ...] = ()
    """Launch by launch, in their order (ncu)."""
    absent: dict[str, str] = {}
    """Name of a counter that was asked for -> why it is not among the values."""


class Conditions(Record, frozen=True, kw_only=True):
    """The device around and during the samples; what it does not tell is absent."""

    clock_mhz_low: float | None = None
    """Of the multiprocessors, or of the slowest core in use; a device that idles is not counted."""
    clock_mhz_high: float | None = None
    memory_clock_mhz_low: float | None = None
    temperature_celsius: float | None = None
    """The highest."""
    watts: float | None = None
    """Mean of the sampled power."""
    throttled: tuple[str, ...] = ()
    """Reasons that slowed the clock, as the driver names them: software power cap, …"""
    performance_states: tuple[int, ...] = ()
    """Those that were seen, 0 is the fastest (NVIDIA)."""
    stolen: float | None = None
    """Share of the machine's CPU time that its host took."""
    samples: int = 0


class Unmeasured(Record, frozen=True, kw_only=True):
    """A quantity that could not be measured here, and why."""

    quantity: Literal["energy", "memory", "counters", "conditions"]
    reason: str


class Comparison(Record, frozen=True, kw_only=True):
    """Candidate against one baseline, paired by batch."""

    baseline: str
    timing: Timing
    speedup: ConfidenceInterval
    """Baseline time over candidate time: above 1 is faster. Of several processes their geometric mean."""
    verdict: Verdict
    minimum_detectable: float | None = None
    """Relative difference that this measurement would have seen with a probability of 80 %: called, or asked
    further processes about."""


class AbsentBaseline(Record, frozen=True, kw_only=True):
    """A baseline that could not be measured, and why."""

    baseline: str
    reason: str


class ReferenceTime(Record, frozen=True, kw_only=True):
    """A baseline's time when the device first measured the problem: what all its later times refer to."""

    baseline: str
    seconds: float

    def __post_init__(self) -> None:
        """Times are divided by it."""
        if not self.seconds > 0:
            raise ValueError(f"a reference of {self.seconds} s, expected more than 0")


class Profiled(Record, frozen=True, kw_only=True, tag="passed"):
    """A variant that was measured; exists only for a variant that verified.

    `time` is the time of a call everywhere: in tables, ranking, objectives of searches, MLflow and texts.
    """

    timing: Timing
    """As measured: samples and their median, with whatever state the device was in."""
    reference: ReferenceTime | None = None
    """None without a baseline: then nothing tells the device's state, and the time is the measured median."""
    comparisons: tuple[Comparison, ...]
    absent: tuple[AbsentBaseline, ...] = ()
    ceilings: Ceilings | None = None
    """None where the measurement was recorded elsewhere: then nothing is known of the roofline either."""
    flops: float | None = None
    """Operations of one call, by the kernel's formula; None where it has none: no estimate is kept here."""
    bytes: float | None = None
    """Compulsory bytes of one call, likewise."""
    roofline_share: float | None = None
    """Roofline time over measured median: 1 is the ceiling. This and the next need the formula."""
    bound: Bound | None = None
    """Which ceiling is the nearest; the level of memory is `ceilings.level`."""
    recorded: str | None = None
    """Of which device and from which file, where the measurement was recorded and not made here."""
    device: dict[str, str]
    """Name, clock, driver, threads, … as found while measuring."""
    notes: tuple[str, ...] = ()
    """What disturbed the measurement or limits its precision, one sentence each."""
    energy: Energy | None = None
    memory: Memory | None = None
    counters: Counters | None = None
    conditions: Conditions | None = None
    unmeasured: tuple[Unmeasured, ...] = ()

    def __post_init__(self) -> None:
        """What was measured here has ceilings, and a roofline if there is a formula; no recorded one has."""
        if self.recorded is None:
            known = lacking(self, _OF_A_FORMULA) != _OF_A_FORMULA
            require_all(self, ("ceilings", *_OF_A_FORMULA) if known else ("ceilings",), "a measurement")
        else:
            none = ("ceilings", "roofline_share", "bound", "reference")
            require_none(self, none, "a measurement")
        if self.reference and self.reference.baseline not in {each.baseline for each in self.comparisons}:
            raise ValueError(f"a reference to {self.reference.baseline}, which was not measured")
        _of_one_origin("a measurement", self.recorded, self.timing)
        for each in self.comparisons:
            _of_one_origin("a measurement", self.recorded, each.timing)
        if self.energy is not None and (self.energy.source == RECORDED) != (self.recorded is not None):
            origin = "made here" if self.recorded is None else "recorded elsewhere"
            raise ValueError(f"a measurement {origin} has its energy from '{self.energy.source}'")

    @property
    def time(self) -> ConfidenceInterval:
        """Seconds of a call, see `reduced_time`."""
        return reduced_time(self.timing, self.comparisons, self.reference)

    @property
    def drift(self) -> float:
        """How many times longer the baseline took now than in the reference; 1 without a reference."""
        return self.timing.median.value / self.time.value

    def baseline_time(self, compared: Comparison) -> ConfidenceInterval:
        """Seconds of a call of a baseline, reduced like `time`: their ratio is the speed-up."""
        return compared.timing.median.scaled(1 / self.drift)


def reduced_time(
    timing: Timing, comparisons: tuple[Comparison, ...], reference: ReferenceTime | None
) -> ConfidenceInterval:
    """Seconds of a call: its ratio to the baseline that ran in turn with it, times the reference.

    A slow phase of the device meets both, so it cancels. Without a reference: the measured median.
    """
    if reference is None:
        return timing.median
    beside = next(each for each in comparisons if each.baseline == reference.baseline)
    return beside.speedup.inverse().scaled(reference.seconds)


class Screening(Record, frozen=True, kw_only=True):
    """A brief measurement, of a search that measures fully only what survives it: no result."""

    share: float
    """Of the timed seconds and batches of a full measurement."""
    timing: Timing
    time: ConfidenceInterval
    """Seconds of a call, as `Profiled.time`."""
    dimensions: dict[str, int] | None = None
    """Of the smaller shape that was measured in place of the workload's; None where it was the workload's."""
    recorded: str | None = None
    """As for `Profiled`."""

    def __post_init__(self) -> None:
        """The timing is of the origin that is named."""
        _of_one_origin("a brief measurement", self.recorded, self.timing)


class ProfileRecord(Record, frozen=True, kw_only=True):
    """One variant on one problem on one device."""

    variant: Variant
    entry: str
    result: Profiled | Failure
    """`screened` where the measurement was brief."""
    screening: Screening | None = None
    """What a brief measurement gave."""
    seconds: float
    provenance: Provenance

    def __post_init__(self) -> None:
        """A brief measurement is no result."""
        ended = self.result.outcome if isinstance(self.result, Failure) else Outcome.PASSED
        if self.screening is not None and ended is not Outcome.SCREENED:
            raise ValueError(f"a brief measurement with the outcome '{ended}', expected 'screened'")


class ProfileOutput(Record, frozen=True, kw_only=True):
    """What profile writes for one round of one task: only what verified is in it."""

    key: str
    round: int
    records: tuple[ProfileRecord, ...]


def _of_one_origin(what: str, recorded: str | None, timing: Timing) -> None:
    """Raise ValueError where a timing is somebody's and its measurement is not, or the other way round."""
    check = require_all if recorded is None else require_none
    check(timing, _OF_A_TIMING, f"the timing of {what}")
