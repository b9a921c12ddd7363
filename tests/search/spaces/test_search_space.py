"""The space: narrowed by the optimization, constraints solved, what they exclude counted."""

import itertools

import msgspec
import pytest

from pipeline.records.configuration.kernel import Constraint, Implementation, Tunable
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.errors import FormulaError
from pipeline.records.formula import evaluate, names_in
from pipeline.search.spaces.search_space import Subspace, narrow, subspace

FULL = Optimization(name="full", description="")
IMPLEMENTATION = Implementation(
    backend="cpp",
    source="kernels/toy/toy.cpp",
    entry="toy",
    origin="",
    licence="",
    tunables={
        "LANES": Tunable(values=(1, 8, 16), default=8, technique="vectorization", off=1),
        "UNROLL": Tunable(values=(1, 2, 4), default=2, technique="unrolling", off=1),
        "STREAM": Tunable(values=(False, True), default=False),
    },
    constraints=(
        Constraint(rule="LANES * 4 <= width", reason="too wide"),
        Constraint(rule="LANES > 1 or UNROLL == 1", reason="scalar code is not unrolled"),
    ),
)
CONSTANTS = {"width": 32, "rows": 5, "itemsize": 4}


def test_points_are_those_of_the_product_that_hold() -> None:
    """The solver finds what trial would find, in the order of the grid."""
    space = subspace("cpp", IMPLEMENTATION, FULL, CONSTANTS)
    product = [
        dict(zip(space.values, values, strict=True)) for values in itertools.product(*space.values.values())
    ]
    valid = [
        point
        for point in product
        if all(evaluate(rule.rule, {**CONSTANTS, **point}) for rule in space.constraints)
    ]
    assert space.size == len(product) == 18
    assert space.points() == valid
    assert space.has_point()


def test_pruned_counts_add_up() -> None:
    """Each rule counts what the rules before it left; together they are what is missing."""
    space = subspace("cpp", IMPLEMENTATION, FULL, CONSTANTS)
    pruned = space.pruned()
    assert [(each.reason, each.count) for each in pruned] == [
        ("too wide", 6),
        ("scalar code is not unrolled", 4),
    ]
    assert space.size - sum(each.count or 0 for each in pruned) == len(space.points())


def test_pruned_of_a_large_space_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a rule is wide, what it excludes is absent, not zero."""
    monkeypatch.setattr("pipeline.search.spaces.constraint_solver.CELLS", 2)
    assert [each.count for each in subspace("cpp", IMPLEMENTATION, FULL, CONSTANTS).pruned()] == [None, None]


@pytest.mark.parametrize(
    ("change", "values"),
    [
        ({}, (1, 8, 16)),
        ({"free": ("UNROLL",)}, (8,)),
        ({"free": ("LANES",)}, (1, 8, 16)),
        ({"fixed": {"LANES": 16}}, (16,)),
        ({"fixed": {"LANES": 16}, "techniques": ()}, (16,)),
        ({"techniques": ("unrolling",)}, (1,)),
        ({"techniques": ("vectorization",), "free": ()}, (8,)),
    ],
)
def test_narrowing(change: dict[str, object], values: tuple[object, ...]) -> None:
    """Fixed, then techniques, then free; the rest keeps its default."""
    optimization = msgspec.structs.replace(FULL, **change)
    assert narrow("LANES", IMPLEMENTATION.tunables["LANES"], optimization) == values


def test_a_technique_without_off_keeps_its_default() -> None:
    """What cannot be switched off stays as it is."""
    tunable = Tunable(values=(16, 32), default=32, technique="tiling")
    assert narrow("BLOCK", tunable, msgspec.structs.replace(FULL, techniques=())) == (32,)


def test_a_rule_over_constants_decides_for_all() -> None:
    """A rule without tunables leaves all points or none."""
    space = subspace("cpp", IMPLEMENTATION, FULL, CONSTANTS)
    closed = msgspec.structs.replace(space, constraints=(Constraint(rule="rows > 5", reason="too few rows"),))
    assert (closed.points(), closed.has_point()) == ([], False)
    assert [each.count for each in closed.pruned()] == [18]


def test_workload_and_hardware_may_be_named_as_owners() -> None:
    """A rule over tunables, the workload and the device's limits, as issues and datasheets write it."""
    values = {"BLOCK_M": (32, 64, 128), "BLOCK_K": (32, 64, 128), "stages": (1, 2, 3)}
    rule = (
        "BLOCK_M * BLOCK_K * stages * itemsize <= hardware.shared_memory_per_block and workload.M >= BLOCK_M"
    )
    space = Subspace(
        implementation="toy",
        values=values,
        default={},
        constraints=(Constraint(rule=rule, reason="must fit"),),
        constants={"shared_memory_per_block": 49152, "M": 64, "itemsize": 4},
    )
    expected = [
        point
        for point in itertools.product(*values.values())
        if point[0] * point[1] * point[2] * 4 <= 49152 and point[0] <= 64
    ]
    assert [tuple(point.values()) for point in space.points()] == expected
    assert names_in(rule) >= {"shared_memory_per_block", "M"}


def test_no_tunables_is_one_point() -> None:
    """An implementation without tunables has exactly one variant."""
    bare = Subspace(implementation="cpp", values={}, default={}, constraints=(), constants=CONSTANTS)
    assert (bare.size, bare.points(), bare.has_point()) == (1, [{}], True)


def test_an_unknown_name_is_an_error_although_never_evaluated() -> None:
    """Names are checked before the solver, which might never come to a rule."""
    rules = (Constraint(rule="rows > 5", reason=""), Constraint(rule="rows > 1 or LANS > 1", reason=""))
    space = msgspec.structs.replace(subspace("cpp", IMPLEMENTATION, FULL, CONSTANTS), constraints=rules[1:])
    with pytest.raises(
        FormulaError, match="unknown name 'LANS'; did you mean 'LANES'. \\(known: LANES, STREAM"
    ):
        space.points()


@pytest.mark.parametrize(
    ("start", "near"),
    [
        ((8, 2, False), (8, 2, False)),
        ((16, 2, True), (8, 2, True)),
        # One change would do in two ways; the tunable that is declared first keeps its value.
        ((1, 2, False), (1, 1, False)),
    ],
)
def test_nearest(start: tuple[int, int, bool], near: tuple[int, int, bool]) -> None:
    """The fewest changes, then the nearest values."""
    space = subspace("cpp", IMPLEMENTATION, FULL, CONSTANTS)
    names = tuple(space.values)
    assert space.nearest(dict(zip(names, start, strict=True))) == dict(zip(names, near, strict=True))


def test_nearest_of_none() -> None:
    """Nothing is valid, or too many points are not."""
    assert (
        subspace("cpp", IMPLEMENTATION, FULL, {"width": 1}).nearest(
            {"LANES": 8, "UNROLL": 2, "STREAM": False}
        )
        is None
    )
    values = {f"T{number}": tuple(range(8)) for number in range(8)}
    rules = (Constraint(rule=" and ".join(f"{name} == 7" for name in values), reason="only one"),)
    space = Subspace(implementation="cpp", values=values, default={}, constraints=rules, constants={})
    assert space.nearest(dict.fromkeys(values, 0)) is None
    assert space.nearest({**dict.fromkeys(values, 7), "T3": 0, "T5": 1}) == dict.fromkeys(values, 7)
