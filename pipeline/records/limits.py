"""Least values of numbers in a record. In: a record, fields. Out: nothing, or a ValueError that names one."""

from pipeline.records.record import Record


def at_least(record: Record, **least: float) -> None:
    """Raise ValueError for a field that is below its least value; an absent one is not."""
    for field, value in least.items():
        found = getattr(record, field)
        if found is not None and found < value:
            raise ValueError(f"{field}: expected at least {value:g}, got {found:g}")


def share(record: Record, *fields: str) -> None:
    """Raise ValueError for a field that is no share; an absent one is none that is wrong."""
    for field in fields:
        found = getattr(record, field)
        if found is not None and not 0 <= found <= 1:
            raise ValueError(f"{field}: expected a share from 0 to 1, got {found:g}")
