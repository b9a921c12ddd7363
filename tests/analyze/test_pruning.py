"""Static pruning says what it loses, or that this is not known."""

from types import SimpleNamespace

import pytest

from pipeline.analyze.pruning import Pruning


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
