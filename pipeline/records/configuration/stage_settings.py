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
MOST_THREADS = 16  # that the detector of races keeps apart


class Verify(Record, frozen=True, kw_only=True):
    """How strictly a variant is judged (`conf/verify/`)."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    seeds: int
    """Fresh random inputs per distribution; the seeds are drawn at run time, unknown to the candidate."""
    distributions: tuple[Distribution, ...]
    """How the inputs are drawn."""
    edge_shapes: int
    """Number of derived shapes in addition to the workload's own."""
    inputs_per_shape: int
    """Number of inputs per derived shape."""
    elements_at_most: int
    """Shapes are scaled down to at most this many elements in the largest tensor, on the device."""
    interpreter_elements_at_most: int
    """The same in the interpreter or emulator."""
    repetitions: int
    """Calls on equal inputs at equal addresses, including the first; they reveal races and cached results."""
    elsewhere: Literal["first", "every"]
    """Which cases are repeated at other addresses, after other work."""
    protect: Literal["first", "every"]
    """Which cases are repeated with read-only inputs (CPU)."""
    settle_seconds: float
    """Seconds after the first call during which the outputs must not change."""
    time_limit: float
    """Seconds per process of a variant, including its start."""
    memory_limit: int
    """Bytes that the candidate's process may use in addition to its parent's."""
    output_limit: int
    """Bytes that the process may print or write."""
    editing_only: bool = False
    """Whether this is for editing loops: a winner that passed only this is not registered as a model."""
    declared_seconds: float = 60.0
    """Of the time for a candidate's call on declared sizes that are too large for most calls (`judge`)."""
    strict_strides: bool = False
    """Whether a candidate's outputs must have the strides of the reference, of an input, or be contiguous."""
    strict_inputs: bool = False
    """Whether a candidate must also be right on rows of zeros and on views, and finite on much larger inputs
    than the problem's (`judge`); otherwise a note says so if it is not."""
    thread_counts: tuple[int, ...] = ()
    """Numbers of threads in calls of a build that finds data races between them; empty: there is none."""
    own_work: bool = True
    """Whether a candidate's own kernels must have done the work (`judge`); a copy of `Model` has none."""
    mixed_precision: bool = True
    """Whether operands of products may be rounded to 16 bits where all that they are computed from has those.

    Kernels for tensor cores do so, also where the reference computes in float32 between its products.
    """
    tf32_products: bool = False
    """Whether operands of products may be cut off to tf32 where the reference multiplies float32.

    Kernels for tensor cores may do so (`input_precision="tf32"`); PyTorch does not, unless
    `torch.backends.cuda.matmul.allow_tf32` is set.
    """

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
        if any(not 1 < count <= MOST_THREADS for count in self.thread_counts):
            raise ValueError(
                f"thread_counts: expected numbers from 2 to {MOST_THREADS}; got {list(self.thread_counts)}"
            )
        for field in ("time_limit", "declared_seconds", "memory_limit", "output_limit"):
            if not getattr(self, field) > 0:
                raise ValueError(f"{field}: got {getattr(self, field)}, expected more than 0")


GraphUse = Literal["short_calls", "always", "never"]
BASELINES = ("eager", "compile", "compile_max_autotune", "vendor")
IMPLEMENTATION = "implementation:"


class Profile(Record, frozen=True, kw_only=True):
    """How long and how precisely a variant is measured (`conf/profile/`)."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    baselines: tuple[str, ...]
    """`eager`, `compile`, `compile_max_autotune`: the reference in PyTorch; `vendor`: all vendor operators
    that the kernel declares; `implementation:<name>`: the default variant of another implementation."""
    seconds_per_variant: float
    """Budget of timed seconds for a variant with its baselines."""
    batches_at_least: int
    """Minimum number of rounds."""
    batches_at_most: int
    """Maximum number of rounds."""
    batch_seconds: float
    """Minimum duration of a batch in seconds, so that the clock's resolution does not matter."""
    processes_at_least: int
    """Number of processes in which each callable is timed, one after the other. They share the budget and the
    batches; each further process gets the same amount as one of them. The memory placement of a process
    changes its times by up to a few percent, which only further processes average out."""
    processes_at_most: int
    """Number of processes if a difference was found that is small: all of them must show it before the
    verdict is faster or slower."""
    warmup_seconds: float
    """Seconds of untimed calls before the first test for drift."""
    warmup_seconds_at_most: float
    """Maximum seconds of warm-up while the time drifts; the result carries a note then."""
    relative_half_width: float
    """Stop when the confidence interval of the speed-up is this narrow, relative to the speed-up."""
    confidence: float
    """Confidence level of the intervals, for example 0.95."""
    time_limit: float
    """Seconds per variant, including the start of its process."""
    flush_cache: bool
    """Evict the last-level cache before each timed call (GPU: L2)."""
    mode: Literal["offline", "server"]
    """`offline`: calls back to back; `server`: single calls after random idle gaps."""
    idle_seconds: float
    """Mean gap of the mode `server` in seconds; gaps are exponentially distributed."""
    cuda_graph: GraphUse
    """Launch each call as a recorded graph (GPU): `short_calls` if launching takes the host more than half as
    long as the call takes the device, `always` (what cannot be recorded has no time), or `never`."""
    energy_seconds: float | None
    """Seconds to observe the device's energy counter; null: do not measure energy."""
    gpu_counters: bool
    """Run each variant once more under Nsight Compute if it is installed (GPU)."""

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
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    enabled: bool
    """Whether results are logged."""
    uri: str
    """MLflow tracking URI; `embedded` is SQLite under artifacts/."""
    experiment: str
    """MLflow experiment for variants; sweeps go to `<experiment>-sweeps`."""
    artifacts: str | None = None
    """Path or URL for the artifacts of new experiments, reachable by everybody who logs; null: under
    artifacts/, or as the tracking server decides."""
