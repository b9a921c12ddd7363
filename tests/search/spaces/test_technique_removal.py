"""A point without each technique is valid, and what changed besides is told."""

import msgspec
import pytest

from pipeline.records.configuration.kernel import Constraint
from pipeline.search.spaces import lattice
from pipeline.search.spaces.search_space import Subspace
from pipeline.search.spaces.technique_removal import without_each

BLOCKED = Subspace(
    implementation="cpp",
    values={"LANES": (1, 8), "ROWS": (1, 4, 6, 14), "VECTORS": (1, 2), "DEPTH": (128, 256, 512)},
    default={"LANES": 8, "ROWS": 6, "VECTORS": 2, "DEPTH": 256},
    constraints=(
        Constraint(rule="LANES > 1 or ROWS <= 6", reason="scalar code is bound by instruction issue"),
        Constraint(rule="(ROWS == 1) == (VECTORS == 1)", reason="blocked both ways or not at all"),
    ),
    constants={},
    techniques={
        "LANES": ("vectorization", 1),
        "ROWS": ("register_blocking", 1),
        "VECTORS": ("register_blocking", 1),
    },
)
BEST = {"LANES": 8, "ROWS": 14, "VECTORS": 2, "DEPTH": 512}


def test_one_technique_off_at_a_time() -> None:
    """All tunables of a technique together; one that expresses none goes back to its default."""
    found = {each.technique: each for each in without_each(BLOCKED, BEST)}
    assert list(found) == ["vectorization", "register_blocking", "DEPTH"]
    blocking = found["register_blocking"]
    assert blocking.tunables == {**BEST, "ROWS": 1, "VECTORS": 1}
    assert (blocking.changed, blocking.along) == (("ROWS", "VECTORS"), ())
    assert found["DEPTH"].tunables == {**BEST, "DEPTH": 256}


def test_what_the_rules_exclude_gives_way_to_the_nearest() -> None:
    """Scalar code with 14 rows is no variant: the nearest one has 6, and the technique stays off."""
    (vectors, *_) = without_each(BLOCKED, BEST)
    assert vectors.tunables == {**BEST, "LANES": 1, "ROWS": 6}
    assert (vectors.changed, vectors.along) == (("LANES",), ("ROWS",))
    assert BLOCKED.contains(vectors.tunables)


def test_what_is_off_already_is_no_technique_of_the_point() -> None:
    """Nothing to switch off, nothing at another value than its default."""
    plain = {"LANES": 1, "ROWS": 1, "VECTORS": 1, "DEPTH": 256}
    assert list(without_each(BLOCKED, plain)) == []


def test_a_technique_that_no_valid_point_is_without() -> None:
    """It is left out."""
    always = msgspec.structs.replace(BLOCKED, constraints=(Constraint(rule="LANES == 8", reason=""),))
    assert [each.technique for each in without_each(always, BEST)] == ["register_blocking", "DEPTH"]


def test_a_space_too_large_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """There only what is valid as it stands."""
    monkeypatch.setattr(lattice, "ENUMERABLE", 2)
    lattice.lattice_of.cache_clear()
    try:
        assert [each.technique for each in without_each(BLOCKED, BEST)] == ["register_blocking", "DEPTH"]
    finally:
        lattice.lattice_of.cache_clear()
