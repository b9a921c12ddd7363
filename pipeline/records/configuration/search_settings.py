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
    """Number of best variants that may have offspring."""
    tournament: int = 3
    """Tournament size: the best of so many random variants becomes a parent."""
    crossover: float = 1.0
    """Probability that a child has two parents."""
    niche: int = 1
    """Of variants that differ in at most this many tunables, only the best has offspring; 0: all have."""
    leap: float = 0.5
    """Probability that a mutated tunable takes any of its values instead of a neighboring one."""
    patience: int = 8
    """Rounds without improvement after which a new random population starts."""

    def __post_init__(self) -> None:
        """Raise ValueError for a population that cannot breed, or a share that is none."""
        at_least(self, population=2, tournament=1, patience=1, niche=0)
        for name in ("crossover", "leap"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected a share from 0 to 1, got {getattr(self, name):g}")


class BasinHopping(Record, frozen=True, kw_only=True):
    """Settings of the local search that jumps out of local optima."""

    start: int = 8
    """Random points before the first descent."""
    jump: int = 3
    """Number of tunables that change at once if no neighbor is better."""

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot move."""
        at_least(self, start=1, jump=1)


class Surrogate(Record, frozen=True, kw_only=True):
    """Settings of the Gaussian process over the valid points."""

    startup: int = 8
    """Random points before the model is used."""
    trials_at_most: int = 400
    """Maximum number of measured points in the model, the best ones; its cost is cubic."""

    def __post_init__(self) -> None:
        """Raise ValueError for what leaves nothing to learn from."""
        at_least(self, startup=2, trials_at_most=2)


class SuccessiveHalving(Record, frozen=True, kw_only=True):
    """Settings of successive halving."""

    rungs: int = 3
    """Rounds of one bracket; the last one measures fully. With more rounds, another bracket starts."""
    keep: int = 3
    """One of this many variants continues to the next rung, where it is measured this many times as long."""
    sampler: str = "random"
    """The strategy that proposes the points of the first rung."""
    shrink: dict[str, int] = {}
    """Dimension of the problem -> factor by which it is shorter on each rung than on the next one; the last
    rung has the workload's shape. Empty: all rungs have it."""

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
    """Settings of the ablation."""

    search: str = "surrogate"
    """Strategy that searches for the best variant in all rounds but the last."""


class Transfer(Record, frozen=True, kw_only=True):
    """Settings of the transfer from other tasks."""

    winners: str | None = None
    """Winners of other devices, shapes or dtypes: path of a `winners.csv`, or a pattern with `*`."""
    at_most: int = 8
    """Maximum number of winners to try, those of the most similar task first."""
    search: str = "surrogate"
    """Strategy that continues from the winners."""

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
    evolution: Evolution | None = None
    basin_hopping: BasinHopping | None = None
    surrogate: Surrogate | None = None
    successive_halving: SuccessiveHalving | None = None
    ablation: Ablation | None = None
    transfer: Transfer | None = None
    folder: str | None = None
    """Folder of sources, relative to the repository: the candidates, or where `mutate` starts."""
    implementation: str | None = None
    """Strategies that write sources: which implementation's source they replace; null: each possible one."""
    agent: Agent | None = None
    """Settings of the strategy `llm`."""
    settings: dict[str, dict[str, Setting]] = {}
    """Settings of strategies that declare their own; in YAML they are under the strategy's name."""

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
