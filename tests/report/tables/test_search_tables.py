"""Tables of searches: rounds and pruning."""

from types import SimpleNamespace

import msgspec
import pytest

from pipeline.records.configuration.pruning import Prune
from pipeline.records.configuration.search_settings import Search, Stop
from pipeline.records.results.collection import Collected
from pipeline.report.tables.search_tables import (
    Pruning,
    find_prunings,
    find_rounds,
    pruning_table,
    rounds_table,
)


def test_one_round_of_each_task(collected: Collected) -> None:
    """The sample's tasks have one round: all of their results are in it."""
    rounds = find_rounds(collected)
    assert len(rounds) == len(collected.generated)
    for each in rounds:
        results = [result for result in collected.results if result.task == each.task]
        assert each.proposed == each.screened + each.pruned + each.failed + each.measured == len(results)
        measured = [result.profiled for result in results if result.profiled]
        best = min((each.timing.median.value for each in measured), default=None)
        assert best == (each.best.profiled.timing.median.value if each.best and each.best.profiled else None)


def test_a_second_round(collected: Collected) -> None:
    """A round that proposes nothing keeps the best and says why."""
    task, generated = collected.generated[0]
    stop = Stop(kind="variants", reason="the budget of 5 variants is spent")
    second = msgspec.structs.replace(generated, round=1, variants=(), stop=stop)
    rounds = find_rounds(msgspec.structs.replace(collected, generated=((task, generated), (task, second))))
    first, last = rounds
    assert (last.proposed, last.variants, last.spent) == (0, first.variants, first.spent)
    assert last.best == first.best
    row = rounds_table(rounds).to_pylist()[1]
    assert (row["stop"], row["reason"]) == ("variants", "the budget of 5 variants is spent")


def test_an_equal_time_is_no_better_one(collected: Collected) -> None:
    """The best so far stays that of the earlier round, which is the winner as well."""
    task, generated = collected.generated[0]
    now = [result for result in collected.results if result.task == task]
    again = tuple(msgspec.structs.replace(result, round=1, id=f"again {result.id}") for result in now)
    second = msgspec.structs.replace(generated, round=1)
    both = ((task, generated), (task, second))
    first, last = find_rounds(msgspec.structs.replace(collected, generated=both, results=(*now, *again)))
    assert first.best is not None
    assert last.best == first.best


def pruning(kept: float | None, dropped: float | None, measured: int) -> Pruning:
    """Of a task that does not matter here."""
    task = SimpleNamespace()
    return Pruning(
        task=task,  # type: ignore[arg-type]
        compiled=40,
        dropped=12,
        measured_anyway=measured,
        best_kept=kept,
        best_dropped=dropped,
    )


@pytest.mark.parametrize(
    ("kept", "dropped", "measured", "loss", "words"),
    [
        (1e-3, 2e-3, 3, 1.0, "the best of 3 that were measured all the same is no faster than the best that"),
        (1e-3, 8e-4, 3, 1.25, "the best of 3 that were measured all the same is 1.25 times faster"),
        (1e-3, None, 0, None, "what this loses is not known: none of the kind was measured"),
        (None, 1e-3, 2, None, "nothing that it keeps was measured"),
    ],
)
def test_the_loss(
    kept: float | None, dropped: float | None, measured: int, loss: float | None, words: str
) -> None:
    """Only what was measured says something."""
    found = pruning(kept, dropped, measured)
    assert found.loss == (None if loss is None else pytest.approx(loss))
    assert found.sentence.startswith("static pruning dropped 12 of 40 compiled variants; ")
    assert words in found.sentence


def test_what_could_not_be_judged_is_told() -> None:
    """How many stayed because their bound is not known, and each reason once."""
    found = msgspec.structs.replace(pruning(1e-3, 2e-3, 3), undecided=("no formula", "no peak", "no formula"))
    assert (
        "dropped 12 of 40 compiled variants and could not judge 3 (no formula; no peak); the"
        in found.sentence
    )


def test_what_verify_did_not_want_counts(collected: Collected) -> None:
    """A variant that was dropped by its bound, though no fact of its binary speaks against it."""
    measured = [each for each in collected.results if each.profiled is not None]
    task = measured[0].task
    slow, *kept = (each for each in measured if each.task == task)
    search = Search(name="", description="", strategy="grid", prune=Prune(bound_over_best_at_most=1))
    declared = {task.generate: SimpleNamespace(search=search)}
    results = (msgspec.structs.replace(slow, unwanted="least time"), *kept)
    (found,) = find_prunings(
        msgspec.structs.replace(collected, results=results, declared=declared)  # type: ignore[arg-type]
    )
    assert (found.measured_anyway, found.compiled) == (1, len(results))
    assert slow.profiled is not None
    assert found.best_dropped == slow.profiled.timing.median.value
    (row,) = pruning_table([found]).to_pylist()
    assert (row["undecided"], row["why_undecided"]) == (0, None)
