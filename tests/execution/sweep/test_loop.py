"""Batches until the limits: a fake launcher, no Hydra."""

import pytest

from pipeline.execution.sweep.optuna_sweeper import NUMBERS as WRITTEN
from pipeline.execution.sweep.optuna_sweeper import command, explore
from pipeline.execution.sweep.swept_space import SweepLimits
from pipeline.records.errors import SweepError
from pipeline.search.sampling.study import Failed, MeasuredPoint
from tests.search.sampling.toy import COUNTED, NUMBERS, opened, quadratic

pytest.importorskip("optuna", reason="not installed: python -m pip install -e '.[optuna]'")


class Launcher:
    """Answers with the quadratic, or with a failure where `fails` says so; remembers its batches."""

    def __init__(self, fails=lambda job: False) -> None:
        self.fails = fails
        self.batches: list[tuple[int, int]] = []

    def __call__(self, points, first_job: int):
        """Run a batch."""
        self.batches.append((first_job, len(points)))
        return [
            Failed(reason="broken")
            if self.fails(first_job + at)
            else MeasuredPoint(values=(quadratic(point),))
            for at, point in enumerate(points)
        ]


def limits(trials: int = 10, batch: int = 4, rate: float = 0.5, timeout: float | None = None) -> SweepLimits:
    """Limits of a sweep."""
    return SweepLimits(trials=trials, batch=batch, max_failure_rate=rate, timeout_seconds=timeout)


def test_batches() -> None:
    """Ten trials in batches of four: 4, 4 and 2, numbered on; each batch is a line."""
    launcher, lines = Launcher(), []
    with opened(NUMBERS) as explored:
        explore(explored, limits(), launcher, say=lines.append)
    assert launcher.batches == [(0, 4), (4, 4), (8, 2)]
    assert [line.split(";")[0] for line in lines] == ["4 of 10 trials", "8 of 10 trials", "10 of 10 trials"]


def test_space_without_another_point() -> None:
    """The sweep ends when every point was evaluated."""
    launcher, lines = Launcher(), []
    with opened(COUNTED) as explored:
        explore(explored, limits(), launcher, say=lines.append)
    assert sum(count for _, count in launcher.batches) == 6
    assert lines[-1] == "the space has no other point: 4 of 10 trials are left"


def test_time_is_over() -> None:
    """After the timeout no batch is begun."""
    lines = []
    with opened(NUMBERS) as explored:
        explore(explored, limits(timeout=1e-9), Launcher(), say=lines.append)
    assert lines == ["the time is over (1e-09 s): 10 of 10 trials are left"]


def test_some_failures_are_borne() -> None:
    """Every third job fails: the sweep goes on, and they count as finished."""
    launcher = Launcher(fails=lambda job: job % 3 == 0)
    with opened(NUMBERS) as explored:
        explore(explored, limits(), launcher, say=lambda line: None)
        assert (explored.finished(), len(explored.failures())) == (10, 4)


@pytest.mark.parametrize(
    ("rate", "batch", "launched"),
    [(0.5, 8, 8), (0.5, 1, 6), (0.0, 1, 1), (0.9, 4, 12)],
)
def test_too_many_failures(rate: float, batch: int, launched: int) -> None:
    """All jobs fail: the sweep ends with one line once they are more than the share of ten jobs at least."""
    launcher = Launcher(fails=lambda job: True)
    message = f"^{launched} of {launched} jobs failed, .*max_failure_rate is {rate:g}; the last one: broken$"
    with opened(NUMBERS) as explored, pytest.raises(SweepError, match=message):
        explore(explored, limits(trials=40, batch=batch, rate=rate), launcher, say=lambda line: None)


def test_rate_of_one_bears_everything() -> None:
    """The user may want to see all failures."""
    launcher = Launcher(fails=lambda job: True)
    with opened(NUMBERS) as explored:
        explore(explored, limits(rate=1.0), launcher, say=lambda line: None)
        assert len(explored.failures()) == 10


@pytest.mark.parametrize(
    ("quantity", "value", "written"),
    [("time", 5.21633e-05, "52.2 µs"), ("speedup", 1.7134, "1.71x"), ("energy", 0.0213, "21.3 mJ")],
)
def test_values_are_written_for_people(quantity: str, value: float, written: str) -> None:
    """The quantities of `conf/objective/`, with their units."""
    assert WRITTEN[quantity](value) == written


def test_the_command_that_runs_a_job_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own name as the command line gives it to Hydra; another program's is its file."""
    monkeypatch.setattr("sys.argv", ["kernelmill run", "-m"])
    assert command(["kernel=softmax", "x=a b"]) == "kernelmill run kernel=softmax 'x=a b'"
