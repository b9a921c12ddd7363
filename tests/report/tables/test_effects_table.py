import itertools

import msgspec
import pytest

from pipeline.report.tables.effects_table import effects_table, find_effects


def timed(collected, times: dict[tuple[tuple[str, object], ...], float]) -> list:
    """Results of one cell that took these times."""
    template = next(result for result in collected.results if result.profiled)
    results = []
    for point, seconds in times.items():
        variant = msgspec.structs.replace(template.variant, tunables=dict(point))
        median = msgspec.structs.replace(template.profiled.timing.median, value=seconds)
        timing = msgspec.structs.replace(template.profiled.timing, median=median)
        record = msgspec.structs.replace(
            template.profile, result=msgspec.structs.replace(template.profiled, timing=timing)
        )
        results.append(msgspec.structs.replace(template, variant=variant, id=variant.id, profile=record))
    return results


def grid(unroll=(1, 2, 4), width=(8, 16, 32, 64), keep=None) -> dict:
    """Halving per doubling of `unroll`, nothing for `width`."""
    return {
        (("unroll", u), ("width", w)): 1e-3 / u
        for u, w in itertools.product(unroll, width)
        if keep is None or keep(u, w)
    }


def levels(effects, tunable: str) -> dict:
    """Level -> effect."""
    return {effect.level: effect for effect in effects if effect.tunable == tunable}


def test_multiplicative_effect_is_recovered(collected):
    """Levels that halve the time are a factor of two apart; a tunable without effect stays at 1."""
    effects = find_effects(timed(collected, grid()))
    unroll = levels(effects, "unroll")
    assert unroll[1].time_ratio == pytest.approx(2) and unroll[4].time_ratio == pytest.approx(0.5)
    assert unroll[1].range == pytest.approx(4)
    assert all(effect.time_ratio == pytest.approx(1) for effect in levels(effects, "width").values())


def test_strongest_tunable_comes_first(collected):
    """One reads from the top what matters."""
    effects = find_effects(timed(collected, grid()))
    assert list(dict.fromkeys(effect.tunable for effect in effects)) == ["unroll", "width"]


def test_best_reachable(collected):
    """How much the best variant with a level loses to the best of all."""
    unroll = levels(find_effects(timed(collected, grid())), "unroll")
    assert [round(unroll[level].best_ratio, 6) for level in (1, 2, 4)] == [4, 2, 1]


def test_constraints_do_not_bias(collected):
    """A group that lacks the slow level moves no other one: only what stands side by side is compared."""
    effects = find_effects(timed(collected, grid(keep=lambda unroll, width: unroll > 1 or width < 64)))
    unroll = levels(effects, "unroll")
    ratios = [unroll[level].time_ratio for level in (1, 2, 4)]
    assert ratios == pytest.approx([2, 1, 0.5])
    assert [unroll[level].groups for level in (1, 2, 4)] == [3, 4, 4]


def test_levels_that_never_stand_side_by_side(collected):
    """Levels are compared through a third one where no group holds both."""
    pairs = {1: (8, 16), 2: (8, 16, 32, 64), 4: (32, 64)}
    effects = find_effects(timed(collected, grid(keep=lambda unroll, width: width in pairs[unroll])))
    unroll = levels(effects, "unroll")
    assert [unroll[level].time_ratio for level in (1, 2, 4)] == pytest.approx([2, 1, 0.5])
    assert unroll[1].method == "matched"


def test_search_without_groups_says_so(collected):
    """Where no two variants differ in one tunable only, the method is named."""
    times = {(("unroll", u), ("width", w)): 1e-3 / u for u, w in ((1, 8), (2, 16), (4, 32), (8, 64))}
    assert {effect.method for effect in find_effects(timed(collected, times))} == {"unmatched"}


def test_too_few_groups_have_no_interval(collected):
    """Two groups give a median, but no interval that one could believe."""
    effects = find_effects(timed(collected, grid(width=(8, 16))))
    assert levels(effects, "unroll")[1].time_ratio_low is None


def test_interval_contains_the_median(collected):
    """Bootstrap intervals enclose their estimate, on noisy times."""
    effects = find_effects(collected.results)
    with_interval = [effect for effect in effects if effect.time_ratio_low is not None]
    assert with_interval
    assert all(e.time_ratio_low <= e.time_ratio <= e.time_ratio_high for e in with_interval)


def test_only_measured_variants_count(collected):
    """Targets that are not here have no effects, whatever is estimated for them."""
    assert {effect.cell.hardware for effect in find_effects(collected.results)} == {"cpu"}


def test_one_level_has_no_effect(collected):
    """A tunable that did not vary is not in the table."""
    effects = find_effects(timed(collected, grid(width=(8,))))
    assert {effect.tunable for effect in effects} == {"unroll"}


def test_table_is_reproducible(collected):
    """The bootstrap has a fixed seed: equal data give equal tables."""
    tables = [effects_table(find_effects(collected.results)) for _ in range(2)]
    assert tables[0].equals(tables[1]) and tables[0].num_rows > 0
