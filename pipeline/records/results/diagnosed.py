"""What limits a variant, in the words of a kernel engineer, and as data that a search can act on."""

from enum import StrEnum
from typing import Literal

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.record import Record

Basis = Literal["measured", "binary", "estimate"]
"""`binary`: read from the machine code, a fact whatever the device does; `estimate`: derived, never seen."""


class FindingCode(StrEnum):
    """Kinds of findings; a search may name them."""

    SPILLS = "spills"
    LOCAL_ARRAYS = "local_arrays"
    NARROW_LOADS = "narrow_loads"
    NARROW_STORES = "narrow_stores"
    OCCUPANCY_REGISTERS = "occupancy_registers"
    OCCUPANCY_SHARED_MEMORY = "occupancy_shared_memory"
    OCCUPANCY_BLOCKS = "occupancy_blocks"
    IDLE_MULTIPROCESSORS = "idle_multiprocessors"
    WAVE_TAIL = "wave_tail"
    IDLE_LANES = "idle_lanes"
    FEW_LOADS_IN_FLIGHT = "few_loads_in_flight"
    NO_MATRIX_INSTRUCTIONS = "no_matrix_instructions"
    OLDER_MATRIX_INSTRUCTIONS = "older_matrix_instructions"
    SPECIAL_FUNCTIONS = "special_functions"
    BARRIERS = "barriers"
    NO_VECTORS = "no_vectors"
    NARROW_VECTORS = "narrow_vectors"
    STACK_TRAFFIC = "stack_traffic"
    MEMORY_BOUND = "memory_bound"
    COMPUTE_BOUND = "compute_bound"
    LAUNCH_BOUND = "launch_bound"
    FAR_FROM_CEILINGS = "far_from_ceilings"
    WORKSPACE = "workspace"
    THROTTLED = "throttled"
    DISTURBED = "disturbed"


class Evidence(Record, frozen=True, kw_only=True):
    """A number that a finding rests on."""

    name: str
    value: float
    unit: str


class Suggestion(Record, frozen=True, kw_only=True):
    """A tunable that acts on what was found, and which of its declared values lie in the right direction."""

    tunable: str
    technique: str | None
    """As the kernel's yaml names it."""
    direction: Literal["increase", "decrease", "switch"]
    """`switch`: a truth value or a name, which has no direction."""
    values: tuple[TunableValue, ...]
    """The nearest first."""


class Finding(Record, frozen=True, kw_only=True):
    """One thing that limits a variant, or that one should know of its measurement."""

    code: FindingCode
    basis: Basis
    sentence: str
    evidence: tuple[Evidence, ...]
    gain_at_most: float | None = None
    """How many times faster the call can become at most if this alone is mended, as far as the bounds know;
    None where it cannot be derived, which does not mean that it is little."""
    suggestions: tuple[Suggestion, ...] = ()
