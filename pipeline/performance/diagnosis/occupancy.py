"""How a launch fills the device: geometry and resources in, `idle_multiprocessors`, `wave_tail`, … out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.diagnosed_case import Case, Direction, Lever, evidence, suggest
from pipeline.performance.quantities import counted
from pipeline.performance.quantities import share as percent
from pipeline.performance.time_bound import Bound, Geometry, TermName
from pipeline.records.results.diagnosed import Evidence, Finding, FindingCode

LOW = 0.5
"""Share of the warps below which it is reported."""
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


UNEVEN = 0.9
"""Efficiency below which a tail is reported."""


def uneven_launch(case: Case) -> Iterator[Finding]:
    """Too few blocks, or a last wave that leaves much of the device idle; lanes and loads that do so."""
    launch = case.launch
    if launch is None:
        return
    if launch.blocks < UNEVEN * launch.multiprocessors:
        yield _idle(case, launch)
    elif launch.balance < UNEVEN or (launch.wave_efficiency or 1.0) < UNEVEN:
        yield from _tail(case, launch)
    if launch.lanes < 1:
        yield _lanes(case, launch)
    if case.bandwidth_share is not None and _slower_than_memory(case.declared):
        yield _loads(case, launch, case.bandwidth_share)


def _idle(case: Case, launch: Geometry) -> Finding:
    idle = launch.multiprocessors - launch.blocks
    return Finding(
        code=FindingCode.IDLE_MULTIPROCESSORS,
        basis="estimate",
        sentence=(
            f"{launch.blocks} blocks on {launch.multiprocessors} multiprocessors: {idle} of them get no work."
        ),
        evidence=_launch_evidence(launch),
        gain_at_most=_gain(case, "spread"),
        suggestions=suggest(case, ("tile", "decrease")),
    )


def _tail(case: Case, launch: Geometry) -> Iterator[Finding]:
    """Two views: the last wave, where residency is known, and the busiest multiprocessor."""
    wave, waves, last = launch.wave, launch.waves, launch.last_wave
    where = f"{launch.blocks:,} blocks on {launch.multiprocessors} multiprocessors"
    if wave is None or waves is None or last is None or waves == 1:
        if launch.balance >= UNEVEN:
            return  # all blocks reside at once, and evenly: a device that is not full has no tail
        sentence = (
            f"{where}: the busiest gets {launch.busiest}, the mean one "
            f"{launch.blocks / launch.multiprocessors:.2f}, so that {percent(1 - launch.balance)} of the "
            "arithmetic lies idle."
        )
    else:
        sentence = (
            f"{where}, {launch.block.resident} at once on each: wave {waves} of {waves} is {percent(last)} "
            f"full, and {percent(1 - (launch.wave_efficiency or 1.0))} of all places stay empty."
        )
    yield Finding(
        code=FindingCode.WAVE_TAIL,
        basis="estimate",
        sentence=sentence,
        evidence=_launch_evidence(launch),
        gain_at_most=_gain(case, "spread"),
        suggestions=suggest(case, ("tile", "decrease"), ("tile", "increase")),
    )


def _lanes(case: Case, launch: Geometry) -> Finding:
    return Finding(
        code=FindingCode.IDLE_LANES,
        basis="estimate",
        sentence=(
            f"Blocks of {launch.block.threads} threads fill {percent(launch.lanes)} of the lanes of their "
            f"warps of {launch.warp_size}."
        ),
        evidence=evidence(threads_per_block=(launch.block.threads, "threads"), lanes=(launch.lanes, "share")),
        gain_at_most=_gain(case, "spread"),
    )


def _loads(case: Case, launch: Geometry, share: float) -> Finding:
    in_flight = launch.bytes_in_flight or 0.0
    return Finding(
        code=FindingCode.FEW_LOADS_IN_FLIGHT,
        basis="estimate",
        sentence=(
            f"At most {in_flight / 1024:,.0f} KiB of loads are in flight, which sustain {percent(share)} of "
            "the memory's bandwidth (Little's law): more blocks, wider loads or more stages hide the latency."
        ),
        evidence=evidence(
            bytes_in_flight=(in_flight, "B"),
            blocks=(launch.blocks, "blocks"),
            bandwidth=(share, "share"),
        ),
        gain_at_most=_gain(case, "latency"),
        suggestions=suggest(case, ("stages", "increase"), ("tile", "decrease"), ("unroll", "increase")),
    )


def _slower_than_memory(bound: Bound | None) -> bool:
    """Whether latency costs what is read more time than the bandwidth costs all bytes."""
    latency, memory = (bound.of("latency"), bound.of("memory")) if bound else (None, None)
    return latency is not None and memory is not None and latency > memory


def _gain(case: Case, name: TermName) -> float | None:
    return case.bound.gain_without(name) if case.bound else None


def _launch_evidence(launch: Geometry) -> tuple[Evidence, ...]:
    numbers = {
        "blocks": (launch.blocks, "blocks"),
        "multiprocessors": (launch.multiprocessors, "multiprocessors"),
        "resident": (launch.block.resident, "blocks per multiprocessor"),
        "waves": (launch.waves, "waves"),
        "last_wave": (launch.last_wave, "share"),
        "balance": (launch.balance, "share"),
    }
    return evidence(**numbers)
