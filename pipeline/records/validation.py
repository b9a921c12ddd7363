"""Checks of the fields of a record: each function raises a ValueError that names the field.

Results that other tools recorded lack much of what a measurement made here always has. Such fields are
optional in the type, and the record that knows its own origin says which of them may be absent.
"""

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


def lacking(record: Record, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the fields that are absent."""
    return tuple([name for name in names if getattr(record, name) is None])


def require_all(record: Record, names: tuple[str, ...], what: str) -> None:
    """For what was found out here.

    Raises
    ------
    ValueError
        A field is absent.
    """
    absent = lacking(record, names)
    if absent:
        raise ValueError(f"{what} lacks {', '.join(absent)}: only a recorded one may be without")


def require_none(record: Record, names: tuple[str, ...], what: str) -> None:
    """For what was recorded elsewhere.

    Raises
    ------
    ValueError
        A field is there that the file could not tell.
    """
    absent = lacking(record, names)
    if len(absent) < len(names):
        told = ", ".join(name for name in names if name not in absent)
        raise ValueError(f"{what} that was recorded elsewhere has {told}: expected none, nothing tells it")
