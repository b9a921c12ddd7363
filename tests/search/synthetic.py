"""A small space with a known landscape, and rounds over it, in process: for the tests of strategies."""

from collections.abc import Callable

import msgspec

from pipeline.records.configuration.kernel import Constraint
from pipeline.records.outcome import Outcome
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.variant import Variant
from pipeline.records.search.search_trial import Trial
from pipeline.search import strategy_registry
from pipeline.search.spaces.search_space import Point, Space, Subspace
from pipeline.search.strategy import Budget

Judge = Callable[[Point], float | Outcome]
"""Seconds of a point, or why it has none."""

CPP = Subspace(
    implementation="cpp",
    values={"A": (1, 2, 3, 4), "B": (False, True), "C": ("x", "y", "z")},
    default={"A": 2, "B": False, "C": "y"},
    constraints=(Constraint(rule="A > 1 or not B", reason=""),),
    constants={},
)
OTHER = msgspec.structs.replace(CPP, implementation="other", constraints=())
SPACE = Space(subspaces=(CPP, OTHER))
SIZE = 21 + 24

WIDE = Space(
    subspaces=(
        Subspace(
            implementation="cpp",
            values={
                "X": (1, 2, 4, 8, 16, 32, 64, 128),
                "Y": (1, 2, 4, 8, 16, 32, 64, 128),
                "Z": (1, 2, 3, 4, 5, 6),
                "V": (False, True),
                "ORDER": ("ij", "ji", "tiled"),
            },
            default={"X": 1, "Y": 1, "Z": 1, "V": False, "ORDER": "ij"},
            constraints=tuple(Constraint(rule=rule, reason="") for rule in ("X * Y <= 1024", "V or Z < 5")),
            constants={},
        ),
    )
)


def valley(point: Point) -> float | Outcome:
    """Seconds with one best point of WIDE: X=32, Y=8, Z=4, V, tiled; the largest tiles crash."""
    _, tunables = point
    values = [float(tunables[name]) for name in ("X", "Y", "Z")]
    if values[0] == 128 and values[1] >= 4:
        return Outcome.CRASHED
    seconds = 1e-3
    for value, best in zip(values, (32, 8, 4), strict=True):
        seconds *= 1 + 0.3 * abs(max(value, best) / min(value, best) - 1) ** 0.5
    seconds *= 1.0 if tunables["V"] else 1.8
    return seconds * {"ij": 1.6, "ji": 1.3, "tiled": 1.0}[str(tunables["ORDER"])]


def easy(point: Point) -> float | Outcome:
    """Seconds of the points of SPACE."""
    implementation, tunables = point
    factor = 1.0 if implementation == "cpp" else 1.5
    return factor * float(tunables["A"]) * (0.5 if tunables["B"] else 1.0) * 1e-3


def fails(point: Point) -> float | Outcome:
    """Nothing ever passes."""
    return Outcome.WRONG_VALUE


def trial(point: Point, judge: Judge, round_number: int, share: float = 1.0) -> Trial:
    """What the chain would say of a point."""
    implementation, tunables = point
    found = judge(point)
    variant = Variant(
        kernel="toy",
        implementation=implementation,
        backend="cpp",
        source_digest="0" * 20,
        attributes={},
        tunables=tunables,
    )
    outcome = found if isinstance(found, Outcome) else Outcome.PASSED
    if share < 1 and outcome is Outcome.PASSED:
        outcome = Outcome.SCREENED
    median = None
    if not isinstance(found, Outcome):
        median = ConfidenceInterval(value=found, low=found, high=found, confidence=0.95)
    full = outcome is Outcome.PASSED
    return Trial(
        variant=variant,
        round=round_number,
        stage="profile" if median else "verify",
        outcome=outcome,
        reason=None if full else "because",
        seconds=median if full else None,
        screened=None if full else median,
        error=1e-6 * float(len(str(tunables))) if full else None,
        spent=1.0,
    )


def play(name: str, space: Space, judge: Judge, budget: Budget) -> list[list[Point]]:
    """All rounds of a search, each with the history of those before."""
    history: list[Trial] = []
    proposed: list[list[Point]] = []
    levels = strategy_registry.fidelities(budget.search) if budget.search else ()
    for number in range(budget.rounds):
        points = strategy_registry.proposer(name.partition("/")[0])(
            space, history, msgspec.structs.replace(budget, round=number)
        )
        proposed.append(points)
        share = levels[number].share if levels else 1.0
        history += [trial(point, judge, number, share) for point in points]
    return proposed
