"""Which optional fields a record holds. In: a record, names of its fields. Out: a ValueError where one is wrong.

Recorded results of other people lack much of what a measurement of ours always has. Their fields are therefore
optional in the type; what may really be absent is said by the record that knows where it comes from.
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
