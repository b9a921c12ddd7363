"""What keeps warps from residing: occupancy bound and its limiter in, `occupancy_…` out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import Direction, Lever, suggest
from pipeline.performance.quantities import counted
from pipeline.performance.quantities import share as percent
from pipeline.records.results.diagnosed import Evidence, Finding, FindingCode

LOW = 0.5
"""Share of the warps below which it is told."""
LOW_WITH_MATRIX_UNITS = 0.125
"""The same for code on matrix units, which hides latency by large tiles rather than by many warps."""

_CODES = {
    "registers": FindingCode.OCCUPANCY_REGISTERS,
    "shared_memory": FindingCode.OCCUPANCY_SHARED_MEMORY,
    "blocks": FindingCode.OCCUPANCY_BLOCKS,
}
_LEVERS: dict[str, tuple[tuple[Lever, Direction], ...]] = {
    "registers": (("tile", "decrease"), ("unroll", "decrease"), ("warps", "increase")),
    "shared_memory": (("stages", "decrease"), ("tile", "decrease")),
    "blocks": (("warps", "increase"),),
}


def limited_occupancy(case: Case) -> Iterator[Finding]:
    """Fewer than half of the warps fit, and a resource that the variant can give up is why."""
    share, limiter = case.facts.occupancy_bound, case.facts.occupancy_limiter
    if share is None or limiter not in _CODES:
        return
    if share >= (LOW_WITH_MATRIX_UNITS if case.count("matrix") else LOW):
        return
    yield Finding(
        code=_CODES[limiter],
        basis="estimate",
        sentence=f"Occupancy {percent(share)} at most: {_why(case, limiter)}.",
        evidence=_evidence(case, share),
        suggestions=suggest(case, *_LEVERS[limiter]),
    )


def _why(case: Case, limiter: str) -> str:
    facts, limits = case.facts, case.limits
    blocks = case.launch.block.resident if case.launch else facts.resident_blocks
    fit = f"lets {counted(blocks, 'block')} reside at once" if blocks is not None else "lets no more reside"
    if limiter == "registers":
        return f"{facts.registers} registers a thread {fit}".replace("lets", "let")
    if limiter == "shared_memory":
        of = f" of {limits['shared_memory_per_sm']:,}" if "shared_memory_per_sm" in limits else ""
        return f"shared memory of {facts.shared_memory:,} B a block{of} {fit}"
    return f"blocks of {facts.threads_per_block} threads reach the most blocks that a multiprocessor takes"


def _evidence(case: Case, share: float) -> tuple[Evidence, ...]:
    facts = case.facts
    numbers = {
        "occupancy": (share, "share"),
        "registers": (facts.registers, "per thread"),
        "shared_memory": (facts.shared_memory, "B per block"),
        "threads_per_block": (facts.threads_per_block, "threads"),
    }
    return evidence(**numbers)
