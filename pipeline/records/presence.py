"""Which optional fields a record must hold or lack. In: a record, names of fields. Out: a ValueError or none.

Recorded results of other people lack much of what a measurement of ours always has. So these fields are
optional in the type, and the record that knows where it comes from says which may really be absent.
"""

from pipeline.records.record import Record


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
