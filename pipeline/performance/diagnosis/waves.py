"""How the launch fills the device: its geometry in, `idle_multiprocessors`, `wave_tail`, … out."""

from collections.abc import Iterator

from pipeline.performance.bound.geometry import Geometry
from pipeline.performance.bound.least import Bound, TermName
from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.performance.diagnosis.levers import suggest
from pipeline.performance.quantities import share as percent
from pipeline.records.results.diagnosed import Evidence, Finding, FindingCode

UNEVEN = 0.9
"""Efficiency below which a tail is told."""


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
        evidence=_evidence(launch),
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
        evidence=_evidence(launch),
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


def _evidence(launch: Geometry) -> tuple[Evidence, ...]:
    numbers = {
        "blocks": (launch.blocks, "blocks"),
        "multiprocessors": (launch.multiprocessors, "multiprocessors"),
        "resident": (launch.block.resident, "blocks per multiprocessor"),
        "waves": (launch.waves, "waves"),
        "last_wave": (launch.last_wave, "share"),
        "balance": (launch.balance, "share"),
    }
    return evidence(**numbers)
