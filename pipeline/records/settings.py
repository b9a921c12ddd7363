"""Settings of the stages that judge and measure, and of tracking: one record per option group."""

from typing import Literal

from pipeline.records.record import Record

Distribution = Literal[
    "normal", "large", "small", "one_signed", "ties", "special", "constant", "integers"
]  # fmt: skip
"""How inputs are drawn (`pipeline.verify.oracle.random_inputs`); `special` and `integers` only if a kernel
promises them."""


_AT_LEAST = {
    "seeds": 1,
    "edge_shapes": 1,
    "inputs_per_shape": 1,
    "elements_at_most": 64,
    "interpreter_elements_at_most": 64,
    "repetitions": 2,
    "settle_seconds": 0.001,
}
"""Below this a preset would judge next to nothing."""


class Verify(Record, frozen=True, kw_only=True):
    """How strictly a variant is judged (`conf/verify/`)."""

    name: str
    description: str
    seeds: int
    """Fresh random inputs per distribution; the seeds are drawn at run time, unknown to the candidate."""
    distributions: tuple[Distribution, ...]
    edge_shapes: int
    """How many derived shapes beside the workload's own."""
    inputs_per_shape: int
    """How many inputs each derived shape meets."""
    elements_at_most: int
    """Shapes are scaled down to at most this many elements in the largest tensor (device present)."""
    interpreter_elements_at_most: int
    """The same where the interpreter stands in for an absent device."""
    repetitions: int
    """Calls on equal inputs at equal addresses, the first one included: they show races and kept results."""
    elsewhere: Literal["first", "every"]
    """Which cases are called once more at other addresses, after other work."""
    protect: Literal["first", "every"]
    """Which cases are called once more with inputs that cannot be written (on the CPU)."""
    settle_seconds: float
    """How long after the first call the outputs must stay what they are."""
    time_limit: float
    """Seconds for one process of a variant, start included."""
    memory_limit: int
    """Bytes that the candidate's process may add to what its parent has."""
    output_limit: int
    """Bytes that it may print or write."""

    def __post_init__(self) -> None:
        """No preset may let everything pass: it must call each variant on some inputs, and end."""
        usable = set(self.distributions) - {"special", "integers"}
        if self.seeds * len(usable) < 2:
            raise ValueError(
                "seeds, distributions: expected at least two inputs of the workload's shape, so that a result"
                " which was only kept shows ('special' and 'integers' do not count);"
                f" got {self.seeds} of {sorted(usable)}"
            )
        if "normal" not in usable:
            raise ValueError(f"distributions: expected 'normal' among them; got {sorted(self.distributions)}")
        for field, least in _AT_LEAST.items():
            if not getattr(self, field) >= least:
                raise ValueError(f"{field}: got {getattr(self, field)}, expected at least {least}")
        for field in ("time_limit", "memory_limit", "output_limit"):
            if not getattr(self, field) > 0:
                raise ValueError(f"{field}: got {getattr(self, field)}, expected more than 0")


BASELINES = ("eager", "compile", "compile_max_autotune", "vendor")
IMPLEMENTATION = "implementation:"


class Profile(Record, frozen=True, kw_only=True):
    """How long and how precisely a variant is measured (`conf/profile/`)."""

    name: str
    description: str
    baselines: tuple[str, ...]
    """`eager`, `compile`, `compile_max_autotune`: the reference in PyTorch; `vendor`: all that the kernel
    declares of vendors' libraries; `implementation:<name>`: the default variant of one of its
    implementations."""
    seconds_per_variant: float
    """Budget of timed seconds for one variant with its baselines."""
    batches_at_least: int
    batches_at_most: int
    batch_seconds: float
    """A batch is long enough for the clock: at least this long."""
    processes_at_least: int
    """How many processes of its own each callable is timed in, one after the other, whatever comes out. These
    share the budget and the batches; each further one has as much as one of them. Where a process's pages lie
    makes up to some per cents for as long as it lives, which only further processes average out, and only
    they show how much it is."""
    processes_at_most: int
    """How many there are where what was found would be a difference, yet a small one: so many then have to
    show it before anything is called faster or slower."""
    warmup_seconds: float
    """Untimed calls before the first look at whether the time still drifts."""
    warmup_seconds_at_most: float
    """When to stop waiting for a time that drifts; the result says so."""
    relative_half_width: float
    """Stop when the confidence interval of the speed-up is this narrow."""
    confidence: float
    """Level of the intervals, for example 0.95."""
    time_limit: float
    """Seconds for one variant, start included."""
    flush_cache: bool
    """Evict the last-level cache before each timed call (GPU: L2)."""
    mode: Literal["offline", "server"]
    """Back to back, or single calls after random idle gaps."""
    idle_seconds: float
    """Mean of the gaps of the mode `server`: exponentially distributed, as independent requests arrive."""
    cuda_graph: bool
    """Launch each call as a recorded graph (GPU)."""
    energy_seconds: float | None
    """How long to watch the device's energy counter, where it has one; null: not at all."""
    gpu_counters: bool
    """Run each variant once more under Nsight Compute, where it is installed (GPU)."""

    def __post_init__(self) -> None:
        """A baseline is a known one, or an implementation by its name."""
        for name in self.baselines:
            if name not in BASELINES and not name.removeprefix(IMPLEMENTATION):
                raise ValueError(f"baselines: '{name}' names no implementation")
            if name not in BASELINES and not name.startswith(IMPLEMENTATION):
                known = ", ".join((*BASELINES, f"{IMPLEMENTATION}<name>"))
                raise ValueError(f"baselines: expected some of {known}; got '{name}'")
        if len(set(self.baselines)) < len(self.baselines):
            raise ValueError(f"baselines: each once; got {list(self.baselines)}")
        if not 1 <= self.processes_at_least <= self.processes_at_most:
            raise ValueError(
                f"processes_at_most: got {self.processes_at_most}, expected at least processes_at_least "
                f"({self.processes_at_least}), and that at least 1"
            )
        if self.mode == "server" and not self.idle_seconds > 0:
            raise ValueError(f"idle_seconds: got {self.idle_seconds}, the mode 'server' needs more than 0")
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence: got {self.confidence}, expected at least 0.5 and less than 1")


class Tracking(Record, frozen=True, kw_only=True):
    """Where results are logged (`conf/tracking/`)."""

    name: str
    description: str
    enabled: bool
    uri: str
    """MLflow tracking URI; `embedded` is SQLite under artifacts/."""
    experiment: str
    """MLflow experiment of the variants; the sweeps go to `<experiment>-sweeps`."""
    artifacts: str | None = None
    """Where new experiments keep their artifacts, a path or a URL that all who log can reach; None: under
    artifacts/, or where the tracking server decides."""
