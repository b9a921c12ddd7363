"""Units of time as other tuners spell them. In: a word. Out: how many of them are a second."""

from pipeline.records.errors import FormatError

MILLISECONDS = "milliseconds"
PER_SECOND = {"seconds": 1.0, MILLISECONDS: 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
SPELLINGS = {
    **{name: name for name in PER_SECOND},
    **{name.removesuffix("s"): name for name in PER_SECOND},
    **{"s": "seconds", "sec": "seconds", "ms": MILLISECONDS, "us": "microseconds", "µs": "microseconds"},
    **{"ns": "nanoseconds", "miliseconds": MILLISECONDS, "milisecond": MILLISECONDS},
}
"""`miliseconds` is what Kernel Tuner wrote until it was corrected."""


def unit_of_time(word: str, place: str) -> str:
    """The unit, by its full name.

    Raises
    ------
    FormatError
        No unit of time that is known.
    """
    unit = SPELLINGS.get(word.strip().lower())
    if unit is None:
        raise FormatError(f"{place}: expected a unit of time ({', '.join(PER_SECOND)}), got '{word}'")
    return unit
