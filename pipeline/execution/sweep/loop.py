"""The sweep: ask for a batch, launch it, tell what it gave. In: an exploration, limits. Out: more trials."""

import time
from collections.abc import Callable, Sequence

from pipeline.execution.sweep.sweeper_settings import Limits
from pipeline.records.errors import SweepError
from pipeline.search.sampling.study import Answer, Exploration, Failed

Launch = Callable[[Sequence[Sequence[str]], int], Sequence[Answer]]
"""Runs one batch: the overrides of each job that are not fixed, and the number of the first job."""

JUDGED = 10
"""A rate of failures is one of so many jobs at least: one unlucky first job ends nothing."""


def explore(exploration: Exploration, limits: Limits, launch: Launch, say: Callable[[str], None]) -> None:
    """Run batches until so many trials are finished, the space is exhausted, or the time is over.

    Raises
    ------
    SweepError
        More jobs failed than may.
    """
    began = time.monotonic()
    failed = launched = 0
    while (left := limits.trials - exploration.finished()) > 0:
        if limits.timeout_seconds is not None and time.monotonic() - began > limits.timeout_seconds:
            say(f"the time is over ({limits.timeout_seconds:g} s): {left} of {limits.trials} trials are left")
            return
        first_job = exploration.next_job()
        asked = exploration.ask(min(left, limits.batch), first_job)
        if not asked:
            say(f"the space has no other point: {left} of {limits.trials} trials are left")
            return
        answers = launch([one.point for one in asked], first_job)
        for one, answer in zip(asked, answers, strict=True):
            exploration.tell(one, answer)
        launched += len(asked)
        failed += sum(isinstance(answer, Failed) for answer in answers)
        say(progress(exploration, limits))
        if failed > limits.max_failure_rate * max(launched, min(limits.trials, JUDGED)):
            raise SweepError(
                f"{failed} of {launched} jobs failed, hydra.sweeper.max_failure_rate is "
                f"{limits.max_failure_rate:g}; the last one: {exploration.failures()[-1]}"
            )


def progress(exploration: Exploration, limits: Limits) -> str:
    """How far the study is, in a line."""
    failures = len(exploration.failures())
    line = f"{exploration.finished()} of {limits.trials} trials" + (
        f", {failures} failed" if failures else ""
    )
    best = exploration.best()
    if not best:
        return line
    if len(exploration.directions) > 1:
        return f"{line}; {len(best)} that no other one beats"
    return f"{line}; best {best[0].values[0]:g} (job {best[0].job})"
