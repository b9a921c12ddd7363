"""Messages between the judge and a candidate's process: plain records; tensors by their place.

The judge sends `LoadRequest`, then one `CallRequest` at a time, each answered by `ReadyReply`, `CallReply`
or `RefusedReply`. Tensors travel in shared memory (`pipeline.verify.harness.buffers`): a `CallRequest` says
where its inputs lie and where copies of the outputs go.
"""

from typing import Any, Literal

from pipeline.backends.backend import MemoryFault
from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Failure
from pipeline.records.record import Record
from pipeline.verify.harness.buffers import Slot

Where = Literal["host", "interpreter", "cuda"]
"""`host`: compiled code on the CPU; `interpreter`: Triton's interpreter on the CPU; `cuda`: the device."""

Value = Any
"""An argument as plain values: None, bool, int, float, str, list, dict[str, ...], or one of the two below.

A tensor is `{"tensor": name}` with the name of a slot, a tuple `{"tuple": [...]}`, a dtype
`{"dtype": "float32"}`.
"""


class LoadRequest(Record, frozen=True, kw_only=True):
    """Import the candidate and construct its `ModelNew`."""

    source: str
    """Absolute path of the candidate's file."""
    arena: str
    """Path of the shared memory."""
    size: int
    where: Where
    limits: dict[str, int]
    """Limits of the hardware target that the process pretends to have (`sm_count`, ...); empty: none."""


WeightUpdate = Literal["in place", "load_state_dict"]


class ConstructRequest(Record, frozen=True, kw_only=True, tag="construct"):
    """Make a new `ModelNew(*arguments)` under a seed; sent once for each set of init arguments."""

    seed: int
    arguments: list[Value]
    inputs: tuple[Slot, ...] = ()
    """Tensors among the arguments; already in shared memory."""
    state: tuple[Slot, ...] = ()
    """Parameters and buffers of the reference, by name, in its order; already in shared memory."""
    update: WeightUpdate | None = None
    """Make no new one: give the present one these weights."""


class CallRequest(Record, frozen=True, kw_only=True, tag="call"):
    """Call `forward(*arguments)`."""

    nonce: str
    """Comes back in the answer: an answer that was prepared beforehand does not know it."""
    arguments: list[Value]
    inputs: tuple[Slot, ...]
    output_offset: int
    """Byte offset where copies of the outputs begin, each aligned to 256 bytes, in order."""
    output_bytes: int
    """Room for them; outputs that do not fit are described but not copied."""
    threads: int
    protected: bool
    """Whether the pages of the inputs are read-only during the call."""
    fenced: bool = False
    """Whether the whole pages of the inputs' guard bands cannot be touched during the call."""
    same_objects: bool = False
    """Whether tensors are the objects of an earlier call that had this; else they are new ones."""
    gradients: bool
    """Whether inputs and parameters that are floating point require gradients and `backward` is called."""
    output_gradients: tuple[Slot, ...] = ()
    """One per output, in shared memory, where `gradients`."""
    suppress: bool = False
    """Own launches are not made: what still comes out right was not computed by them. Those that cannot be
    left out are made, and only they are among the observed ones."""
    settle: float = 0.0
    """Seconds to wait after the outputs were copied before they are compared with their copies."""


class ReturnedTensor(Record, frozen=True, kw_only=True):
    """One tensor that came out: an output, or a gradient of an input or parameter."""

    name: str
    """`output 0`, `gradient of input 1`, `gradient of weight` (the name that the parameter has in the
    reference, where it was taken over)."""
    kind: str
    """`Tensor` for a plain tensor; the name of any other type, which is then not copied."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    """In elements."""
    device: str = ""
    offset: int | None = None
    """Of the contiguous copy; None if it was not copied."""
    aliases: tuple[str, ...] = ()
    """Inputs (`input 0`) and parameters whose memory it shares."""
    overlaps: bool = False
    """Whether two of its elements share memory."""
    unwritten: int = 0
    """Elements that still hold what allocations memory was filled with."""
    changed_later: bool = False
    """Whether it changed after `forward` had returned."""


Reads = Literal["input", "derived", "nothing"]
"""What a launch knows of the inputs: it gets one or a copy, only what was computed from one, or neither."""


class Launches(Record, frozen=True, kw_only=True):
    """Kernels of the candidate's own that ran during one call."""

    kind: Literal["triton", "extension", "ctypes", "cuda"]
    name: str
    count: int
    copies: bool = False
    """Whether all that it changed in memory equals one of its arguments: it computed nothing."""
    reads: Reads = "input"
    """The most that one of the launches was given."""


class TorchOperation(Record, frozen=True, kw_only=True):
    """An operator of PyTorch that computes (no view, allocation, copy or cast), seen during one call."""

    name: str
    """`aten::softmax`."""
    count: int
    elements: int
    """Of its largest tensor argument or result."""
    from_own: bool
    """Whether an argument was computed by one of the candidate's own kernels."""
    is_output: bool
    """Whether its result is the output, bit for bit."""


class Observed(Record, frozen=True, kw_only=True):
    """What the process noticed during one call."""

    launches: tuple[Launches, ...] = ()
    operations: tuple[TorchOperation, ...] = ()
    native: tuple[str, ...] = ()
    """Shared objects of the candidate's own in this process."""
    tampering: tuple[str, ...] = ()
    """What it changed outside of itself, one line each: `time.perf_counter was replaced`."""
    threads: int = 0
    """Threads that run now and did not before the call."""
    children: int = 0
    out_of_bounds: tuple[str, ...] = ()
    """Writes outside of tensors that it allocated itself."""
    memory_faults: tuple[MemoryFault, ...] = ()
    """What an interpreter saw."""


class ReadyReply(Record, frozen=True, kw_only=True, tag="ready"):
    """Loaded, or constructed."""

    state: str = ""
    """After `ConstructRequest`: how parameters were matched: `by name`, `by shape`, `none`, `equal`."""
    missing: tuple[str, ...] = ()
    """After `ConstructRequest`: parameters of the reference that have no counterpart."""
    same_names: bool = False
    """After `ConstructRequest`: each of them has a counterpart of its own name, so that it can be changed."""
    spare: int = 0
    """After `ConstructRequest`: elements of the candidate's own floating tensors (parameters, buffers,
    attributes of its modules) that took over nothing: they may hold a missing parameter in another form."""
    isolation: tuple[str, ...] = ()
    """After `LoadRequest`: what confines the process."""
    process: int = 0
    """After `LoadRequest`: its id, from which follows how long it waited for a core."""
    tampering: tuple[str, ...] = ()


class CallReply(Record, frozen=True, kw_only=True, tag="done"):
    """`forward` (and `backward`) returned."""

    nonce: str
    outputs: tuple[ReturnedTensor, ...]
    gradients: tuple[ReturnedTensor, ...] = ()
    structure: str = "tensor"
    """`tensor`, `tuple`, `list`, or the name of any other type."""
    reshaped: tuple[str, ...] = ()
    """Inputs whose shape, strides, type or place are not what was given, one line each."""
    overwrites: bool = False
    """Whether an output of the call before has changed since."""
    observed: Observed
    seconds: float


class RefusedReply(Record, frozen=True, kw_only=True, tag="refused"):
    """Importing, constructing or calling raised."""

    stage: Literal["import", "build", "construct", "call", "backward"]
    """`build`: a C++ or CUDA extension or a Triton kernel did not compile."""
    error: str
    """The exception's type."""
    reason: str
    """`RuntimeError: ...`, the first line that says something."""
    nonce: str = ""


Answer = ReadyReply | CallReply | RefusedReply


class CompileRequest(Record, frozen=True, kw_only=True):
    """Compile the kernels of one call for an absent target (`runtime.cross_compiler`)."""

    source: str
    """Absolute path of the candidate's file."""
    target: Target
    initial: list[Value]
    """Arguments of `ModelNew`."""
    arguments: list[Value]
    """Arguments of `forward`."""
    tensors: tuple[Slot, ...]
    """Types and shapes of the tensors among both; their memory is not read."""
    every_configuration: bool
    """Whether an autotuner tries all of its configurations, or takes the first one."""


class CompiledKernel(Record, frozen=True, kw_only=True):
    """One kernel as compiled for the target."""

    name: str
    registers: int | None = None
    """Per thread (NVIDIA) or lane (AMD)."""
    spills: int | None = None
    """Bytes per thread."""
    shared_memory: int | None = None
    """Bytes per block."""


class CompileReply(Record, frozen=True, kw_only=True):
    """What became of it."""

    kernels: tuple[CompiledKernel, ...] = ()
    failure: Failure | None = None
    """`compile_error`, or `launch_error` where a kernel needs more than the target has."""
    incomplete: str = ""
    """Why not all kernels could be reached (host code needs values, ...): no fault of the candidate."""
