"""How variants are proposed: a strategy, its settings, the budget, and what a search says when it ends."""

import math
from typing import Literal

from pipeline.records.configuration.agent_settings import Agent
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.pruning import Prune
from pipeline.records.record import Record
from pipeline.records.validation import at_least

ObjectiveName = Literal["seconds", "joules", "error"]
PlainSetting = bool | int | float | str | None
Setting = PlainSetting | list[PlainSetting] | dict[str, PlainSetting]

SHORTEST = 64
"""Of a dimension that a search makes shorter: below, a block would be more than the whole of it."""


class Evolution(Record, frozen=True, kw_only=True):
    """Settings of the evolutionary search."""

    population: int = 8
    """Best variants that may have offspring."""
    tournament: int = 3
    """Of so many at random the best becomes a parent."""
    crossover: float = 1.0
    """Probability that a child has two parents."""
    niche: int = 1
    """Of variants that differ in at most so many tunables only the best one has offspring; 0: all have."""
    leap: float = 0.5
    """Probability that a tunable which changes takes any of its values, and not the one next to it."""
    patience: int = 8
    """Rounds without a better variant after which a new population begins at random."""

    def __post_init__(self) -> None:
        """Raise ValueError for a population that cannot breed, or a share that is none."""
        at_least(self, population=2, tournament=1, patience=1, niche=0)
        for name in ("crossover", "leap"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected a share from 0 to 1, got {getattr(self, name):g}")


class BasinHopping(Record, frozen=True, kw_only=True):
    """Settings of the local search that jumps when it stands in a valley."""

    start: int = 8
    """Points at random before the first descent."""
    jump: int = 3
    """Tunables that change at once when no neighbour is better."""

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot move."""
        at_least(self, start=1, jump=1)


class Surrogate(Record, frozen=True, kw_only=True):
    """Settings of the Gaussian process over the valid points."""

    startup: int = 8
    """Points at random before the model decides."""
    trials_at_most: int = 400
    """The model sees so many of the measured points, the best ones; its cost is cubic."""

    def __post_init__(self) -> None:
        """Raise ValueError for what leaves nothing to learn from."""
        at_least(self, startup=2, trials_at_most=2)


class SuccessiveHalving(Record, frozen=True, kw_only=True):
    """Settings of the search that measures many variants briefly and the best of them longer."""

    rungs: int = 3
    """Rounds of one bracket; the last one measures fully. With more rounds another bracket begins."""
    keep: int = 3
    """One of so many goes on to the next rung, where it is measured so many times as long."""
    sampler: str = "random"
    """The strategy that proposes the points of the first rung."""
    shrink: dict[str, int] = {}
    """Dimension of the problem -> how many times shorter it is on each rung than on the next one; the last
    rung has the workload's shape. Empty: all have it."""

    def __post_init__(self) -> None:
        """Raise ValueError for a ladder without rungs, or a dimension that would not become shorter."""
        at_least(self, rungs=2, keep=2)
        for name, factor in self.shrink.items():
            if factor < 2:
                raise ValueError(f"shrink.{name}: expected at least 2, got {factor}")

    def share(self, round_number: int) -> float:
        """Share of the timed seconds and batches that a round has; 1 is a full measurement."""
        return float(self.keep) ** -self.rungs_above(round_number)

    def rungs_above(self, round_number: int) -> int:
        """How many rungs of its bracket come after a round."""
        return self.rungs - 1 - round_number % self.rungs

    def dimensions(self, workload: dict[str, int], round_number: int) -> dict[str, int]:
        """Those that a round measures on."""
        above = self.rungs_above(round_number)
        return {name: shorter(size, self.shrink.get(name, 1) ** above) for name, size in workload.items()}


def shorter(size: int, times: int) -> int:
    """A dimension so many times shorter, rounded up to the part of 64 that divides it, and not below 64.

    So what is a multiple of a block or of a vector stays one, and what is not stays none.
    """
    part = math.gcd(size, SHORTEST)
    return min(size, max(SHORTEST, -(-size // (times * part)) * part))


class Ablation(Record, frozen=True, kw_only=True):
    """Settings of the ablation: from one variant, one technique off at a time."""

    search: str = "surrogate"
    """The strategy that looks for the best variant in all rounds but the last; in one round, the default."""


class Transfer(Record, frozen=True, kw_only=True):
    """Settings of the search that begins with winners from elsewhere."""

    winners: str | None = None
    """Winners of other devices, shapes or dtypes: the path of a `winners.csv`, or a pattern with `*`."""
    at_most: int = 8
    """So many of them are tried, those of the most similar task first."""
    search: str = "surrogate"
    """The strategy that goes on from there."""

    def __post_init__(self) -> None:
        """Raise ValueError for no winners at all."""
        at_least(self, at_most=1)


class Start(Record, frozen=True, kw_only=True):
    """A winner of another task: its point, as far as this task's space has its values."""

    implementation: str
    tunables: dict[str, TunableValue]
    of: str
    """Which task won with it: `matmul llama3_8b_decode on h200, float16`."""


class Convergence(Record, frozen=True, kw_only=True):
    """When a search has come to rest."""

    percent: float
    """The best time must have fallen by more than this …"""
    rounds: int
    """… within so many rounds."""

    def __post_init__(self) -> None:
        """Raise ValueError for no round to look at, or a gain below none."""
        at_least(self, percent=0, rounds=1)


class Search(Record, frozen=True, kw_only=True):
    """A search strategy with its settings, and the budget."""

    name: str
    description: str
    strategy: str
    """Name of a strategy (docs/reference)."""
    rounds: int = 1
    variants_per_round: int | None = None
    """None: all that the space holds."""
    seed: int = 0
    variants: int | None = None
    """Budget: variants in all rounds together."""
    seconds: float | None = None
    """Budget: seconds that compile, verify and profile took for the variants, one after the other."""
    joules: float | None = None
    """Budget: energy that the device's counter saw while variants were measured."""
    convergence: Convergence | None = None
    prune: Prune | None = None
    evolution: Evolution | None = None
    basin_hopping: BasinHopping | None = None
    surrogate: Surrogate | None = None
    successive_halving: SuccessiveHalving | None = None
    ablation: Ablation | None = None
    transfer: Transfer | None = None
    folder: str | None = None
    """Path from the repository to a folder of sources: all those of `candidates`, the first of `mutate`."""
    implementation: str | None = None
    """Strategies that write: whose source they replace; None: that of each implementation that they can."""
    agent: Agent | None = None
    """Of the strategy `llm`."""
    settings: dict[str, dict[str, Setting]] = {}
    """Of strategies that declare their own; in the yaml they stand under the strategy's name."""

    def screening(self) -> tuple[float, ...]:
        """Round -> share of a full measurement; empty where every round measures fully."""
        if self.strategy != "successive_halving":
            return ()
        ladder = self.successive_halving or SuccessiveHalving()
        return tuple(ladder.share(number) for number in range(self.rounds))

    def shapes(self, workload: dict[str, int]) -> tuple[dict[str, int], ...]:
        """Round -> dimensions that it measures on; empty where every round has the workload's."""
        ladder = self.successive_halving
        if self.strategy != "successive_halving" or ladder is None or not ladder.shrink:
            return ()
        return tuple(ladder.dimensions(workload, number) for number in range(self.rounds))


StopKind = Literal["variants", "seconds", "joules", "converged", "exhausted"]


class Stop(Record, frozen=True, kw_only=True):
    """Why a round proposes nothing."""

    kind: StopKind
    """`exhausted`: the strategy has nothing more to propose."""
    reason: str
