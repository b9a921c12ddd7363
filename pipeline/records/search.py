"""How variants are proposed, and the budget."""

from typing import Literal

from pipeline.records.agent import Agent
from pipeline.records.record import Record


class Search(Record, frozen=True, kw_only=True):
    """A search strategy with its settings."""

    name: str
    description: str
    strategy: Literal["grid", "random", "llm"]
    rounds: int = 1
    variants_per_round: int | None = None
    """None: all that the space holds."""
    seed: int = 0
    agent: Agent | None = None
    """Of the strategy `llm`."""
