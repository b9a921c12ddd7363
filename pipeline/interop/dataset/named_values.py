"""Mappings as lists of named values, which have one type in every format: records in, parts of a row out."""

from pipeline.interop.dataset.row_schema import Fact, Setting, Size, StaticFact
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.results.compiled import StaticFacts


def settings(values: dict[str, TunableValue]) -> tuple[Setting, ...]:
    """By name."""
    return tuple(setting(name, value) for name, value in sorted(values.items()))


def setting(name: str, value: TunableValue) -> Setting:
    """One of them; a truth value is no number."""
    if isinstance(value, bool):
        return Setting(name=name, kind="boolean", value="true" if value else "false")
    if isinstance(value, str):
        return Setting(name=name, kind="text", value=value)
    return Setting(name=name, kind="integer" if isinstance(value, int) else "number", value=repr(value))


def sizes(counts: dict[str, int]) -> tuple[Size, ...]:
    """By name."""
    return tuple(Size(name=name, value=count) for name, count in sorted(counts.items()))


def facts(values: dict[str, str]) -> tuple[Fact, ...]:
    """By name."""
    return tuple(Fact(name=name, value=value) for name, value in sorted(values.items()))


def static_fact(found: StaticFacts) -> StaticFact:
    """The same with what is estimated under names that say so."""
    return StaticFact(
        code_bytes=found.code_bytes,
        registers=found.registers,
        scalar_registers=found.scalar_registers,
        spills=found.spills,
        shared_memory=found.shared_memory,
        threads_per_block=found.threads_per_block,
        local_memory=found.local_memory,
        barriers=found.barriers,
        matrix=sizes(found.matrix),
        extensions=sizes(found.extensions),
        instructions=sizes(found.instructions),
        estimate_occupancy=found.occupancy_bound,
        estimate_occupancy_limiter=found.occupancy_limiter,
        estimate_resident_blocks=found.resident_blocks,
    )
