"""Static pruning says what it loses, or that this is not known."""

from types import SimpleNamespace

import msgspec
import pytest

from pipeline.records.configuration.pruning import Prune
from pipeline.records.configuration.search_settings import Search
from pipeline.records.results.collection import Collected
from pipeline.report.tables.pruning_table import Pruning, find_prunings, pruning_table


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
