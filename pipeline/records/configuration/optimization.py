"""Which tunables are free, what is fixed, which techniques are on."""

from typing import Literal

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.record import Record


class Optimization(Record, frozen=True, kw_only=True):
    """Narrows the declared space of an implementation."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    free: Literal["all"] | tuple[str, ...] = "all"
    """Names of the tunables that vary; the others keep their default."""
    fixed: dict[str, TunableValue] = {}
    """Tunable -> its one value."""
    techniques: Literal["all"] | tuple[str, ...] = "all"
    """Techniques that are on; a tunable of another technique has its `off` value."""
    implementations: Literal["all"] | tuple[str, ...] = "all"
    """Names of the implementations that take part."""
