"""Messages between the judge and a candidate's process: plain records; tensors by their place.

The judge sends `LoadRequest`, answered by `ConfinedReply` and `ReadyReply`, then one request at a time, each
answered by `ReadyReply`, `CallReply` or `RefusedReply`. Tensors travel in shared memory
(`pipeline.verify.harness.buffers`): a request says where inputs lie and where outputs go. Expected values are
in none of the messages.
"""

from typing import Any, Literal

from pipeline.backends.backend import CompileJob, MemoryFault
from pipeline.backends.devices.device_registry import HOST
from pipeline.records.configuration.hardware import DeviceKind, Target
from pipeline.records.outcome import Failure
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.judged import JudgedWhere
from pipeline.verify.harness.buffers import Layout, Slot

Value = Any
"""An argument as plain values: None, bool, int, float, str, list, dict[str, ...], or one of the two below.

A tensor is `{"tensor": name}` with the name of a slot, a tuple `{"tuple": [...]}`, a dtype
`{"dtype": "float32"}`.
"""


class DeclaredKernel(Record, frozen=True, kw_only=True, tag="kernel"):
    """A compiled variant of a declared kernel: outputs are given to it."""

    job: CompileJob
    compiled: Compiled
    root: str
    """The repository."""
    folder: str
    """The store entry that compile left."""
    device: DeviceKind
    """Where it runs: the host, if an interpreter or an emulator stands in for the target's device."""
    threads: int
    """The most that any call has."""
    detector: str | None = None
    """What a build that finds data races is linked with; None: the artifact itself is loaded."""


class ModelFile(Record, frozen=True, kw_only=True, tag="model"):
    """A file with a `ModelNew`: it returns its outputs."""

    source: str
    """Absolute path of the file."""
    where: JudgedWhere
    device: DeviceKind = HOST
    """Where its tensors lie: the host as well, if an interpreter stands in for the target's device."""
    limits: dict[str, int]
    """Limits of the hardware target that the process pretends to have (`sm_count`, ...); empty: none."""
    detector: str | None = None
    """What its own builds are linked with, so that data races are found; None: they are as it makes them."""
    header: str | None = None
    """A compiled header that its emulated builds read first (`extension_headers`); None: none."""


class LoadRequest(Record, frozen=True, kw_only=True):
    """Load the kernel, or import the file."""

    candidate: DeclaredKernel | ModelFile
    arena: str
    """Path of the shared memory."""
    size: int


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


class CallRequest(Record, frozen=True, kw_only=True):
    """How a call is made, by either convention."""

    nonce: str
    """Comes back in the answer: an answer that was prepared beforehand does not know it."""
    threads: int
    """Of torch, and of kernels that share its OpenMP runtime."""
    protected: bool = False
    """Whether the pages of the inputs are read-only during the call."""
    fenced: bool = False
    """Whether the whole pages of the tensors' guard bands cannot be touched during the call."""
    settle: float = 0.0
    """Seconds after which outputs are looked at a second time; the judge does it where it can read them."""


class KernelCall(CallRequest, frozen=True, kw_only=True, tag="kernel_call"):
    """Launch a declared kernel on these buffers."""

    layout: Layout
    poison: int
    """Word of 16 bits that the outputs hold; memory that the kernel allocates holds it too, lest a right
    answer of an earlier call be found there."""
    inspect: bool = False
    """Whether to compare the surroundings with what they were before the artifact was loaded."""
    disturb: bool = False
    """Whether memory is allocated and filled by others before."""


class ForwardCall(CallRequest, frozen=True, kw_only=True, tag="forward_call"):
    """Call `forward(*arguments)`."""

    arguments: list[Value]
    inputs: tuple[Slot, ...]
    output_offset: int
    """Byte offset where copies of the outputs begin, each aligned to 256 bytes, in order."""
    output_bytes: int
    """Room for them; outputs that do not fit are described but not copied."""
    same_objects: bool = False
    """Whether tensors are the objects of an earlier call that had this; else they are new ones."""
    gradients: bool
    """Whether inputs and parameters that are floating point require gradients and `backward` is called."""
    output_gradients: tuple[Slot, ...] = ()
    """One per output, in shared memory, where `gradients`."""
    interrupted: bool = False
    """Between forward and backward, `forward` is called on the same inputs in another order."""
    suppress: bool = False
    """Own launches are not made: what still comes out right was not computed by them. Those that cannot be
    left out are made, and only they are among the observed ones."""


class OutputState(Record, frozen=True, kw_only=True):
    """One tensor that came out: an output, or a gradient of an input or parameter."""

    name: str
    """`y`; of a model `output 0`, `gradient of input 1`, `gradient of weight` (the name that the parameter
    has in the reference, where it was taken over)."""
    kind: str = "Tensor"
    """`Tensor` for a plain tensor; the name of any other type, which is then not copied."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    """In elements."""
    elsewhere: str = ""
    """The device that it is on, if the inputs are on another one."""
    offset: int | None = None
    """Of the contiguous copy; None if it was not copied."""
    aliases: tuple[str, ...] = ()
    """Inputs (`input 0`) and parameters whose memory it shares."""
    overlaps: bool = False
    """Whether two of its elements share memory."""
    unwritten: int = 0
    """Elements that still hold what allocations memory was filled with."""
    moved: bool = False
    """Whether an output that was given is at another address."""
    changed_later: bool = False
    """Whether it changed after the call had returned."""


Reads = Literal["input", "derived", "weights", "nothing"]
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


class InterpretedLaunch(Record, frozen=True, kw_only=True):
    """How an interpreted kernel was launched, as far as it decides what would be compiled."""

    name: str
    file: str
    """Name of the file that its source is in."""
    arguments: dict[str, Value] | None
    """With the options of the launch. A tensor is `{"tensor": "float32"}`, a type of Triton's
    `{"type": "fp32"}`; numbers that are no constants stand for their kind. None: an argument is something
    else."""


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
    """Whether its result is an output, bit for bit."""
    beside_own: bool = False
    """Whether own kernels made other outputs, which hold more elements than those that PyTorch computed."""
    with_own: bool = False
    """Whether own kernels made another output, of any size."""


class Observed(Record, frozen=True, kw_only=True):
    """What the process noticed during one call."""

    launches: tuple[Launches, ...] = ()
    counted: int | None = None
    """Launches that the device or the backend of a declared kernel counted; None where there are none to
    count."""
    interpreted: tuple[InterpretedLaunch, ...] = ()
    operations: tuple[TorchOperation, ...] = ()
    native: tuple[str, ...] = ()
    """Shared objects of the candidate's own in this process."""
    starts_threads: bool = False
    """Whether one of them has regions of OpenMP."""
    watched: bool = False
    """Whether one of them was linked with a detector of data races."""
    tampering: tuple[str, ...] | None = ()
    """What it changed outside of itself, one line each: `time.perf_counter was replaced`; None if it was not
    compared."""
    threads: int = 0
    """Threads that run now and did not before it was loaded, those of a thread pool left out."""
    children: int = 0
    """The same for processes."""
    out_of_bounds: tuple[str, ...] = ()
    """Writes outside of tensors that it allocated itself."""
    memory_faults: tuple[MemoryFault, ...] = ()
    """What an interpreter or emulator saw."""
    remarks: tuple[str, ...] = ()
    """What else it saw that may explain a wrong value."""


class ConfinedReply(Record, frozen=True, kw_only=True, tag="confined"):
    """The process gave up its rights, before any code of the candidate ran."""

    isolation: tuple[str, ...]
    """Mechanisms that are active."""
    process: int
    """Its id, from which follows how long it waited for a core."""


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
    tampering: tuple[str, ...] = ()


class CallReply(Record, frozen=True, kw_only=True, tag="done"):
    """The call returned and its work is finished."""

    nonce: str
    outputs: tuple[OutputState, ...]
    gradients: tuple[OutputState, ...] = ()
    structure: str = "tensor"
    """`tensor`, `tuple`, `list`, or the name of any other type."""
    reshaped: tuple[str, ...] = ()
    """Inputs whose shape, strides, type or place are not what was given, one line each."""
    overwrites: bool = False
    """Whether an output of the call before has changed since."""
    observed: Observed
    seconds: float = 0.0


RefusalStage = Literal["load", "import", "build", "construct", "call", "backward"]


class RefusedReply(Record, frozen=True, kw_only=True, tag="refused"):
    """Loading, constructing or calling raised."""

    stage: RefusalStage
    """`load`: a declared kernel; `build`: a C++ or CUDA extension or a Triton kernel did not compile."""
    error: str
    """The exception's type."""
    reason: str
    """`RuntimeError: ...`, the first line that says something."""
    nonce: str = ""


Request = ConstructRequest | KernelCall | ForwardCall
Answer = ConfinedReply | ReadyReply | CallReply | RefusedReply


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
    gradients: bool
    """Whether gradients are propagated back as well, so that the kernels of a backward are compiled."""
    interpreted: tuple[InterpretedLaunch, ...] = ()
    """Launches in the interpreter: what the call does not reach, for example because host code needs values,
    is compiled for these."""
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
    of_extension: bool = False
    """Whether a compiler of extensions refused, so that no configuration of an autotuner matters."""
    incomplete: str = ""
    """Why not all kernels could be reached (host code needs values, ...): no fault of the candidate."""
