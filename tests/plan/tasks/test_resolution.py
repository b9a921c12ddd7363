"""Defaults depend on the problem and target: preferred values where the rules allow them, or near ones."""

import pytest

from pipeline.plan.tasks.resolution import Spaces
from pipeline.records.configuration.kernel import Constraint, Implementation, Tunable, TunableValue
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.errors import ConfigError
from pipeline.search.spaces.search_space import subspace

IMPLEMENTATION = Implementation(
    backend="cpp",
    source="kernels/toy/toy.cpp",
    entry="toy",
    origin="",
    licence="",
    tunables={
        "LANES": Tunable(values=(1, 8, 16), default=8, prefer=(16,), technique="vectorization", off=1),
        "ROWS": Tunable(values=(1, 6, 14), default=6, prefer=(14,), technique="blocking", off=1),
        "STREAM": Tunable(values=(False, True), default=False),
    },
    constraints=(
        Constraint(rule="LANES * 32 <= vector_bits", reason="too wide"),
        Constraint(rule="2 * ROWS <= registers", reason="spills"),
        Constraint(rule="LANES > 1 or ROWS <= 6", reason="scalar code"),
    ),
)
NOTHING_FREE = Optimization(name="defaults", description="", free=())
AVX512 = {"vector_bits": 512, "registers": 32}
AVX2 = {"vector_bits": 256, "registers": 16}


def defaults(optimization: Optimization, limits: dict[str, int]) -> dict[str, TunableValue]:
    """The defaults that the implementation has with these limits."""
    chosen = Spaces().with_defaults({"cpp": IMPLEMENTATION}, optimization, limits, "toy.yaml")
    assert not any(each.prefer for each in chosen["cpp"].tunables.values())
    return {name: each.default for name, each in chosen["cpp"].tunables.items()}


@pytest.mark.parametrize(
    ("limits", "lanes", "rows"),
    [
        (AVX512, 16, 14),
        (AVX2, 8, 6),
        ({"vector_bits": 256, "registers": 32}, 8, 14),
        # No combination of these is valid: the nearest point is.
        ({"vector_bits": 32, "registers": 32}, 1, 6),
        ({"vector_bits": 256, "registers": 2}, 8, 1),
        # None is: the declared defaults stay, and the space says which rule excludes them.
        ({"vector_bits": 16, "registers": 2}, 8, 6),
    ],
)
def test_the_first_preferred_values_that_the_rules_allow(
    limits: dict[str, int], lanes: int, rows: int
) -> None:
    """The default depends on the target, through the rules that exist."""
    assert defaults(NOTHING_FREE, limits) == {"LANES": lanes, "ROWS": rows, "STREAM": False}


@pytest.mark.parametrize(
    "optimization",
    [
        Optimization(name="fixed", description="", free=(), fixed={"LANES": 1}),
        Optimization(name="off", description="", free=(), techniques=("blocking",)),
    ],
)
def test_what_an_optimization_sets_is_met(optimization: Optimization) -> None:
    """Other tunables take values that go with it; its own default stays: it is no default variant."""
    assert defaults(optimization, AVX512) == {"LANES": 16, "ROWS": 6, "STREAM": False}
    chosen = Spaces().with_defaults({"cpp": IMPLEMENTATION}, optimization, AVX512, "toy.yaml")
    space = subspace("cpp", chosen["cpp"], optimization, AVX512)
    assert space.points() == [{"LANES": 1, "ROWS": 6, "STREAM": False}]


def test_equal_implementations_are_one_object() -> None:
    """What later steps keep by identity is shared by tasks that differ in sizes only."""
    spaces, given = Spaces(), {"cpp": IMPLEMENTATION}
    first, second, other = (
        spaces.with_defaults(given, NOTHING_FREE, limits, "toy.yaml")
        for limits in ({**AVX512, "rows": 1}, {**AVX512, "rows": 2}, AVX2)
    )
    assert first is second is not other


def test_a_rule_that_cannot_be_evaluated_is_an_error_of_the_file() -> None:
    """As in a kernel without preferred values."""
    with pytest.raises(ConfigError, match=r"toy.yaml: constraints: .*unknown name 'registers'"):
        defaults(NOTHING_FREE, {"vector_bits": 512})
