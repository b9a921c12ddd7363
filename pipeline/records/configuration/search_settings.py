"""How variants are proposed: the strategy with its settings, the budget, and why a search ended."""

from typing import Literal

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.pruning import Prune
from pipeline.records.record import Record, at_least

ObjectiveName = Literal["seconds", "joules", "error"]
PlainSetting = bool | int | float | str | None
Setting = PlainSetting | list[PlainSetting] | dict[str, PlainSetting]


class Start(Record, frozen=True, kw_only=True):
    """A winner of another task: its point, restricted to tunables that this task has."""

    implementation: str
    tunables: dict[str, TunableValue]
    of: str
    """Which task won with it: `matmul llama3_8b_decode on h200, float16`."""


class Convergence(Record, frozen=True, kw_only=True):
    """When a search has converged."""

    percent: float
    """The search ends if the best time fell by no more than this percentage …"""
    rounds: int
    """… within this number of rounds."""

    def __post_init__(self) -> None:
        """Raise ValueError for no round to look at, or a gain below none."""
        at_least(self, percent=0, rounds=1)


class Search(Record, frozen=True, kw_only=True):
    """A search strategy with its settings, and the budget."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    strategy: str
    """Name of the strategy."""
    rounds: int = 1
    """Maximum number of rounds."""
    variants_per_round: int | None = None
    """Maximum number of variants per round; null: the whole space."""
    seed: int = 0
    """Seed of random choices."""
    variants: int | None = None
    """Budget: variants in all rounds together."""
    seconds: float | None = None
    """Budget: total seconds of compile, verify and profile for the variants."""
    joules: float | None = None
    """Budget: energy while variants were measured, by the device's counter."""
    convergence: Convergence | None = None
    """When to stop early."""
    prune: Prune | None = None
    """Rules that drop variants before they are measured."""
    settings: dict[str, dict[str, Setting]] = {}
    """Settings of the strategy, and of the one that it wraps, by name; in YAML they are top-level keys."""


StopKind = Literal["variants", "seconds", "joules", "converged", "exhausted"]


class Stop(Record, frozen=True, kw_only=True):
    """Why a round proposes nothing."""

    kind: StopKind
    """`exhausted`: the strategy has nothing more to propose."""
    reason: str
