import msgspec
import pytest

from pipeline.measure.statistics import NEAR, RESOLUTION
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.aggregated import NotMeasured, Winner
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import ReferenceTime, Timing
from pipeline.report.tables.variants_table import variants_table
from pipeline.report.winner_selection import find_winners, room_between, winners_table


def winner_of(results, kernel: str, workload: str, hardware: str) -> Winner | NotMeasured:
    """What a cell got."""
    (found,) = [
        winner
        for winner in find_winners(results)
        if (winner.cell.kernel, winner.cell.workload, winner.cell.hardware) == (kernel, workload, hardware)
    ]
    return found


def with_profiled(result: Result, **changes: object) -> Result:
    """The same with other values of its measurement."""
    profiled = msgspec.structs.replace(result.profiled, **changes)
    return msgspec.structs.replace(result, profile=msgspec.structs.replace(result.profile, result=profiled))


def with_timing(result: Result, timing: Timing) -> Result:
    """The same with another timing of the variant."""
    return with_profiled(result, timing=timing)


def slowed(result: Result, factor: float) -> Result:
    """The same where the machine took so many times as long, for the baselines too."""

    def timing(of: Timing) -> Timing:
        return msgspec.structs.replace(of, median=of.median.scaled(factor))

    comparisons = tuple(
        msgspec.structs.replace(each, timing=timing(each.timing)) for each in result.profiled.comparisons
    )
    return with_profiled(result, timing=timing(result.profiled.timing), comparisons=comparisons)


def test_winner_is_the_fastest_measured(collected):
    """The least time wins among the variants that verified and were measured."""
    winner = winner_of(collected.results, "softmax", "llama3_8b_decode", "cpu")
    times = [
        result.profiled.timing.median.value
        for result in collected.results
        if result.profiled and result.task.task == winner.task
    ]
    assert winner.seconds.value == min(times)
    assert (winner.variants, winner.verified, winner.measured) == (24, 20, 19)
    assert winner.tunables == {"threads_grain": 64, "unroll": 8, "vectorize": True}


def test_what_was_refused_never_wins(collected):
    """A variant above the roofline has no time, however fast it was; the next one wins."""
    cell = ("softmax", "llama3_8b_decode", "cpu")
    best = winner_of(collected.results, *cell)
    refusal = Failure(outcome=Outcome.OVER_ROOFLINE, reason="2.00 of the roofline: work left out")
    results = [
        msgspec.structs.replace(result, profile=msgspec.structs.replace(result.profile, result=refusal))
        if result.id == best.variant and result.task.task == best.task
        else result
        for result in collected.results
    ]
    second = winner_of(results, *cell)
    assert second.variant != best.variant
    assert second.seconds.value > best.seconds.value
    assert second.measured == best.measured - 1


def test_tied_counts_what_cannot_be_told_apart(collected):
    """Variants that cannot be told apart from the winner are counted, it itself is not."""
    results = [result for result in collected.results if result.profiled and result.task.kernel == "rms_norm"]
    best = winner_of(results, "rms_norm", "llama3_8b_decode", "cpu")
    twin = next(result for result in results if result.id != best.variant)
    near = msgspec.structs.replace(twin.profiled.timing, median=best.seconds.scaled(1.01))
    changed = [with_timing(result, near) if result is twin else result for result in results]
    assert winner_of(changed, "rms_norm", "llama3_8b_decode", "cpu").tied == best.tied + 1


def test_one_process_each_leaves_more_room(collected):
    """Where it lies in memory may be some per cents; several processes have that in their intervals."""
    profiled = next(result.profiled for result in collected.results if result.profiled)
    counts = (1, len(profiled.timing.samples) - 1)
    several = msgspec.structs.replace(
        profiled, timing=msgspec.structs.replace(profiled.timing, processes=counts)
    )
    assert room_between(profiled, profiled) == room_between(profiled, several) == 1 + NEAR
    assert room_between(several, several) == 1 + RESOLUTION


def test_a_slow_phase_of_the_machine_does_not_decide(collected):
    """Nor does it show: the winner's time is the least that any table has, whatever was measured."""
    results = [result for result in collected.results if result.profiled and result.task.kernel == "rms_norm"]
    reference = ReferenceTime(
        baseline="eager", seconds=results[0].profiled.comparisons[0].timing.median.value
    )
    fixed = [with_profiled(result, reference=reference) for result in results]
    best = winner_of(fixed, "rms_norm", "llama3_8b_decode", "cpu")
    slow = [slowed(result, 9.0) if result.id == best.variant else result for result in fixed]
    found = winner_of(slow, "rms_norm", "llama3_8b_decode", "cpu")
    assert (found.variant, found.seconds) == (best.variant, best.seconds)
    rows = variants_table(slow).to_pylist()
    assert found.seconds.value == min(row["median_seconds"] for row in rows)
    winner = next(row for row in rows if row["variant"] == best.variant)
    assert winner["drift"] == pytest.approx(winner["measured_seconds"] / winner["median_seconds"])
    assert winner["measured_seconds"] > 5 * winner["median_seconds"]
    for row in rows:
        assert row["baseline.eager.seconds"] / row["median_seconds"] == pytest.approx(row["speedup.eager"])


def test_no_winner_without_a_device(collected):
    """A target that is not here has no winner: it says so, and its estimate is named one."""
    missing = winner_of(collected.results, "matmul", "llama3_8b_prefill", "a100")
    assert isinstance(missing, NotMeasured)
    assert missing.reason == "device unavailable"
    assert (missing.variants, missing.compiled, missing.where) == (24, 23, "interpreter")
    assert missing.estimate_roofline_seconds > 0


def test_no_winner_where_all_failed(collected):
    """A cell in which everything failed says what stopped it."""
    missing = winner_of(collected.results, "matmul_bias_gelu", "awkward", "cpu")
    assert isinstance(missing, NotMeasured) and missing.reason == "12 compile errors"


def test_the_preset_of_verify_stays_visible(collected):
    """A winner says how strictly it was judged; of equal ones the stricter counts."""
    results = [result for result in collected.results if result.task.kernel == "rms_norm"]

    def judged(preset: str, *, editing: bool) -> list[Result]:
        return [
            msgspec.structs.replace(
                result,
                task=msgspec.structs.replace(result.task, task=preset, preset=preset, editing_only=editing),
            )
            for result in results
        ]

    fast, standard = judged("fast", editing=True), judged("standard", editing=False)
    cell = ("rms_norm", "llama3_8b_decode", "cpu")
    assert (winner_of(fast, *cell).preset, winner_of(fast, *cell).editing_only) == ("fast", True)
    for both in ([*fast, *standard], [*standard, *fast]):
        assert (winner_of(both, *cell).preset, winner_of(both, *cell).editing_only) == ("standard", False)


def test_weak_check_stays_visible(collected):
    """A winner whose check would have let zeros pass carries that."""
    assert winner_of(collected.results, "softmax", "awkward", "cpu").weak == ("zeros",)


def test_same_variant_of_two_optimizations_competes_once(collected):
    """Tasks that differ only in optimization share a cell; equal variants do not double the counts."""
    results = [result for result in collected.results if result.task.kernel == "rms_norm"]
    other = [
        msgspec.structs.replace(
            result, task=msgspec.structs.replace(result.task, task="other", optimization="baseline")
        )
        for result in results
    ]
    once = winner_of(results, "rms_norm", "llama3_8b_decode", "cpu")
    twice = winner_of([*other, *results], "rms_norm", "llama3_8b_decode", "cpu")
    assert (twice.variants, twice.measured) == (once.variants, once.measured)


def test_table_has_no_time_where_nothing_was_measured(collected):
    """A row without a measurement has status and reason, and null for every time, ratio and share."""
    rows = winners_table(find_winners(collected.results)).to_pylist()
    row = next(row for row in rows if row["hardware"] == "h200")
    assert (row["status"], row["reason"]) == ("not measured", "device unavailable")
    assert all(row[name] is None for name in ("median_seconds", "roofline_share", "speedup.eager", "variant"))
    measured = next(row for row in rows if row["status"] == "measured")
    assert measured["speedup.eager.low"] <= measured["speedup.eager"] <= measured["speedup.eager.high"]
    assert measured["configuration"] == "threads_grain=64 unroll=8 vectorize=True"
    assert pytest.approx(measured["bytes_per_second"]) == 8 * 512 * 4096 / measured["median_seconds"]
