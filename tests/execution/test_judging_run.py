"""What a judging says at its end."""

from pipeline.execution.judging_run import JudgingResult, text
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.judged import Verdict
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.timed import TimedRecord
from tests.execution.gym.made_up import profiled
from tests.performance.submissions import MADE


def timed(solution: str, result: Profiled | Failure) -> TimedRecord:
    """What timing says of a candidate."""
    return TimedRecord(
        problem="softmax", solution=solution, entry="entry", result=result, seconds=1.0, provenance=MADE
    )


def test_counts_are_those_of_the_leaderboard() -> None:
    """Whoever is timed on the declared sizes has passed; a cheat that timing finds has not."""
    outcomes = {
        "slow": Outcome.PASSED_REDUCED,
        "timed": Outcome.PASSED_REDUCED,
        "cheat": Outcome.PASSED,
        "wrong": Outcome.WRONG_VALUE,
    }
    result = JudgingResult(
        verdicts=tuple(
            Verdict(problem="softmax", solution=name, outcome=outcome, where="host")
            for name, outcome in outcomes.items()
        ),
        timed=(
            timed("slow", Failure(outcome=Outcome.TIMEOUT, reason="60 s")),
            timed("timed", profiled(low=1.9, value=2.0, high=2.1, seconds=1e-3)),
            timed("cheat", Failure(outcome=Outcome.TAMPERED, reason="keeps its result")),
        ),
        failed_jobs=(),
        table="verdicts.csv",
        traces=None,
    )
    lines = text(result).splitlines()
    place = lines.index("4 candidates: 1 passed, 1 passed_reduced, 1 tampered, 1 wrong_value")
    assert lines[place + 1 : place + 4] == [
        "          1 passed: judged on reduced sizes, right on the declared ones when timed",
        "passed    softmax/timed (ran on: host)",
        "passed_reduced softmax/slow (ran on: host)",
    ]
