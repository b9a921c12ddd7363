"""How variants are proposed, and the budget."""

from typing import Literal

from pipeline.records.record import Record


class Search(Record, frozen=True, kw_only=True):
    """A search strategy with its settings."""

    name: str
    description: str
    strategy: Literal["grid", "random"]
    rounds: int = 1
    variants_per_round: int | None = None
    """None: all that the space holds."""
    seed: int = 0
