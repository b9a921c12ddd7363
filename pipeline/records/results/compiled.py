"""What compile found out about one variant."""

from pipeline.records.configuration.pruning import Scale
from pipeline.records.outcome import Failure
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record
from pipeline.records.results.variant import Variant


class StaticFacts(Record, frozen=True, kw_only=True):
    """Facts read from the binary; None means that this backend cannot know it, never zero."""

    code_bytes: int | None = None
    """Size of the machine code of the kernel's functions."""
    registers: int | None = None
    """Per thread (NVIDIA) or vector registers per lane (AMD)."""
    scalar_registers: int | None = None
    """AMD: scalar registers per wave."""
    spills: int | None = None
    """Spilled bytes per thread (NVIDIA: what ptxas stores because of it; AMD: spilled VGPRs x 4)."""
    shared_memory: int | None = None
    """Bytes per block, static and dynamic."""
    threads_per_block: int | None = None
    occupancy_bound: float | None = None
    """Estimate: resident warps over the most that one multiprocessor can hold."""
    occupancy_limiter: str | None = None
    """What sets it: registers, shared_memory, threads, blocks."""
    resident_blocks: int | None = None
    """Estimate: blocks that one multiprocessor holds at once."""
    local_memory: int | None = None
    """Bytes of local memory (AMD: scratch; CPU: largest stack frame) per thread: spills, and arrays that are
    indexed at run time."""
    barriers: int | None = None
    """NVIDIA: hardware barriers that a block reserves."""
    matrix: dict[str, int] = {}
    """Matrix instructions by name (`HMMA`, `HGMMA`, `v_mfma_f32_32x32x8_f16`, …) -> static count."""
    extensions: dict[str, int] = {}
    """CPU: instruction-set extension that vector code needs (`avx512f`, `fma`, …) -> static count."""
    instructions: dict[str, int] = {}
    """Instruction mix: class (`matrix`, `fma`, `load_global`, `vector_fma`, …) -> static count."""


class Compiled(Record, frozen=True, kw_only=True, tag="passed"):
    """A variant that compiled."""

    artifact: str
    """Name of the main file next to the stored record: `kernel.so`, `kernel.cubin`, `kernel.hsaco`."""
    artifact_digest: str
    functions: tuple[str, ...]
    """Kernels that one call launches (GPU), or the exported function (CPU)."""
    grid: tuple[int, ...] | None = None
    """Blocks of the first launch on the workload's shape (GPU)."""
    facts: StaticFacts
    files: tuple[str, ...]
    """All files kept next to the record: sources, intermediate representations, disassembly."""


class CompileRecord(Record, frozen=True, kw_only=True):
    """One variant on one target."""

    variant: Variant
    entry: str
    """Digest of the store entry that holds the files."""
    result: Compiled | Failure
    seconds: float
    provenance: Provenance


class CompileOutput(Record, frozen=True, kw_only=True):
    """What compile writes for one round of one task."""

    key: str
    round: int
    records: tuple[CompileRecord, ...]
    scale: Scale | None = None
    """As generate found it in earlier rounds: verify holds the bounds of this one's variants against it."""
