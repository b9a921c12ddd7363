"""What a measuring child is asked and what it answers, one record each."""

from typing import Literal

from pipeline.backends.backend import CompileJob
from pipeline.measure.hosting.call_costs import Examined
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.kernel import GradientOf
from pipeline.records.configuration.stage_settings import GraphUse
from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.profiled import Launch, Peak


class Candidate(Record, frozen=True, kw_only=True, tag="candidate"):
    """A compiled variant; its outputs are preallocated."""

    job: CompileJob
    compiled: Compiled
    root: str
    """The repository."""
    folder: str
    """Where compile left the artifact."""


CompileMode = Literal["no", "default", "max-autotune-no-cudagraphs"]


class Reference(Record, frozen=True, kw_only=True, tag="reference"):
    """The kernel's reference in PyTorch: as it is, or through torch.compile.

    Of a backward kernel it is the forward's reference, called and differentiated in every call.
    """

    function: str
    """`module:function`."""
    gradient_of: GradientOf | None = None
    set_up: str | None = None
    """`module:function`, called once before anything else: chooses the library for the whole process."""
    prepare: str | None = None
    """`module:function`, called with the inputs before calls are timed: returns what `function` gets."""
    compiled: CompileMode = "no"
    """Whether through torch.compile, and its mode. Graphs of its own are left out: whether launches are
    recorded is a setting of the measurement, equal for all."""
    vector_instructions: Literal["trusted", "tried"] = "trusted"
    """Whether torch.compile takes the processor's word for the vector instructions that the C++ compiler
    knows. Trying them out takes 8 s with a cold cache, 1 s with a warm one (2 cores)."""


class HostedModel(Record, frozen=True, kw_only=True, tag="model"):
    """A problem from elsewhere: its `Model`, or a candidate's `ModelNew` with the weights of `Model`."""

    problem: str
    """Path of its `problem.py`."""
    sizes: dict[str, int] = {}
    """Module-level names with other values than the declared ones."""
    candidate: str | None = None
    """Path of the file with `ModelNew`; None: `Model` itself."""
    builds: bool = False
    """Whether it may run a compiler when it is loaded."""
    seed: int
    """Of its construction and of the inputs that are drawn; equal for the candidate and its baselines."""
    compiled: CompileMode = "no"
    vector_instructions: Literal["trusted", "tried"] = "trusted"
    """As for a reference."""


Hosted = Candidate | Reference | HostedModel


def is_candidate(hosted: Hosted) -> bool:
    """Whether it is what is judged by its time: a baseline is trusted."""
    return isinstance(hosted, Candidate) or (isinstance(hosted, HostedModel) and hosted.candidate is not None)


def is_written(hosted: Hosted) -> bool:
    """Whether somebody wrote its source whom nobody knows: its process is confined."""
    if isinstance(hosted, Candidate):
        return hosted.job.variant.written
    return isinstance(hosted, HostedModel) and hosted.candidate is not None


def is_confined(hosted: Hosted) -> bool:
    """Whether its process is confined: also that of `Model`, because confinement makes system calls slower.

    Not that of a compiled model, whose compiler is a program with files of its own.
    """
    return is_written(hosted) or (isinstance(hosted, HostedModel) and not is_compiled(hosted))


def is_compiled(hosted: Hosted) -> bool:
    """Whether it goes through torch.compile."""
    return not isinstance(hosted, Candidate) and hosted.compiled != "no"


class SetUp(Record, frozen=True, kw_only=True, tag="set_up"):
    """What to host."""

    hosted: Hosted
    problem: Problem | None
    """None of a model, which brings its own."""
    kind: DeviceKind
    flush_cache: bool
    cuda_graph: GraphUse = "never"


class Load(Record, frozen=True, kw_only=True, tag="load"):
    """Load it and call it once."""

    seed: int


class Calibrate(Record, frozen=True, kw_only=True, tag="calibrate"):
    """Warm up, then find how many calls make a batch."""

    warmup_seconds: float
    warmup_seconds_at_most: float
    batch_seconds: float
    straight: bool
    """Whether batches by which the clock is checked are counted too, as the timed ones are not such."""


class Prepare(Record, frozen=True, kw_only=True, tag="prepare"):
    """Make fresh content and settle."""

    seed: int
    settle_seconds: float | None
    """Untimed calls for so long, at least one; None: no call."""


class Go(Record, frozen=True, kw_only=True, tag="go"):
    """Run the timed calls."""

    calls: int
    lead: int = 0
    """Calls right before them, back to back, timed apart."""
    gaps: tuple[float, ...] = ()
    """Idle seconds before each call, which is timed alone then; none: back to back."""
    straight: bool = False
    """Back to back whatever the settings, nothing flushed: for a look at the clock."""


class CallAgain(Record, frozen=True, kw_only=True, tag="call_again"):
    """See whether it still gives on its first inputs what it gave."""


class Sample(Record, frozen=True, kw_only=True, tag="sample"):
    """Of a model: run a batch on the content of a seed, and show elements of what the last call returned.

    Inputs are written in place, in a way that PyTorch does not count as a change.
    """

    seed: int
    calls: int
    """In the batch."""


class Repeat(Record, frozen=True, kw_only=True, tag="repeat"):
    """Of a model: time calls on inputs with a few new elements, and on inputs that it has just seen."""

    seed: int


class Count(Record, frozen=True, kw_only=True, tag="count"):
    """Of `Model`: count what the operators that it dispatches do; the only command besides `SetUp`."""

    seed: int


class Examine(Record, frozen=True, kw_only=True, tag="examine"):
    """See what calls cost besides time; the last command."""

    calls: int
    """In one batch."""
    energy_seconds: float | None
    """How long to watch the energy counter; None: not at all."""


Command = SetUp | Load | Calibrate | Prepare | Go | CallAgain | Sample | Repeat | Count | Examine


class Ready(Record, frozen=True, kw_only=True, tag="ready"):
    """Sent before any code of a candidate is loaded."""

    process: int
    """Process and session id."""


class Loaded(Record, frozen=True, kw_only=True, tag="loaded"):
    """It works."""

    setup_seconds: float
    first_call_seconds: float
    first_peak: Peak
    """Memory that the first call took."""
    facts: dict[str, str]


RefusalCause = Literal[
    "raised", "out_of_memory", "out_of_bounds", "device_unavailable", "changed", "tampered"
]


class Refused(Record, frozen=True, kw_only=True, tag="refused"):
    """It cannot be loaded or called; the process ends."""

    reason: str
    why: RefusalCause = "raised"
    """`changed`: it worked, and gives another result now than at its first call; `tampered`: it replaced what
    it is timed with."""


class Calibrated(Record, frozen=True, kw_only=True, tag="calibrated"):
    """Calls in one batch, what one call takes about, and how the warm-up ended."""

    calls: int
    call_seconds: float
    straight_calls: int | None
    """Calls in a batch by which the clock is checked, where the timed ones are not such."""
    warmup_seconds: float
    drift: float | None
    """Relative change over the last batches of the warm-up, where they still drifted at its end."""
    host_seconds: float | None
    launch: Launch | None = None
    """How the device gets its work."""


class Prepared(Record, frozen=True, kw_only=True, tag="prepared"):
    """The next `Go` runs nothing but its calls."""


class Unchanged(Record, frozen=True, kw_only=True, tag="unchanged"):
    """It does, and what it is timed with is as it was."""


class SampledOutput(Record, frozen=True, kw_only=True):
    """Elements of one output, at places that follow from the seed."""

    shape: tuple[int, ...]
    exact: bool
    """Whether it holds integers or truth values."""
    values: tuple[float, ...]


class Sampled(Record, frozen=True, kw_only=True, tag="sampled"):
    """What its last call returned."""

    outputs: tuple[SampledOutput, ...]


class Repeated(Record, frozen=True, kw_only=True, tag="repeated"):
    """Seconds of single calls, pair by pair."""

    fresh: tuple[float, ...]
    """A few elements of each input are new."""
    seen: tuple[float, ...]
    """The same elements were written again, with the values that they had."""


class DispatchedWork(Record, frozen=True, kw_only=True, tag="dispatched_work"):
    """What the operators of one call of `Model` do."""

    matrix_flops: float
    """Of products, convolutions and attention."""
    vector_flops: float
    """One for each element that any other operator computes from."""
    read: float
    """Bytes of inputs and weights, each element that is used counted once."""
    written: float
    """Bytes of outputs."""
    changed: float
    """Bytes of their elements that differ between two contents: no algorithm leaves them unwritten."""
    dtype: str
    """Of most operations."""


class Ran(Record, frozen=True, kw_only=True, tag="ran"):
    """Seconds of the whole batch, by this process's clock."""

    seconds: float
    lead_seconds: float = 0.0
    """Of the calls before the timed ones."""
    latencies: tuple[float, ...] = ()
    """Of each call, where they were timed one by one."""


Answer = (
    Ready
    | Loaded
    | Refused
    | Calibrated
    | Prepared
    | Ran
    | Unchanged
    | Sampled
    | Repeated
    | DispatchedWork
    | Examined
)
