"""Made-up submissions of several models on the same problems."""

import math
import random

from pipeline.records.outcome import Outcome
from pipeline.records.results.scored import HeldOutResult, ScoredCandidate, ScoredProblem, Submission
from tests.performance.submissions import failed, measured, problem, submission

FAILURES = (Outcome.WRONG_VALUE, Outcome.COMPILE_ERROR, Outcome.TAMPERED, Outcome.CRASHED)

OTHER_SIZES: tuple[HeldOutResult, ...] = ("faster", "indistinguishable", "failed")


def model(
    name: str, *, correct: float, speedup: float, samples: int = 4, problems: int = 40, hardware: str = "h200"
) -> Submission:
    """A model that is correct in so many of its samples, and then about so fast."""
    draw = random.Random(name)

    def sample(number: int) -> ScoredCandidate:
        if draw.random() > correct:
            return failed(draw.choice(FAILURES), sample=number)
        value = math.exp(draw.gauss(math.log(speedup), 0.5))
        held_out: tuple[HeldOutResult, ...] = ("faster", draw.choice(OTHER_SIZES))
        return measured(value, compiled=0.8 * value, held_out=held_out, sample=number)

    def made(place: int) -> ScoredProblem:
        level, category = str(1 + place % 2), ("norm", "matmul", "loss")[place % 3]
        kept = samples if draw.random() > 0.05 else 0
        return problem(f"level{level}/{place}", *map(sample, range(kept)), level=level, category=category)

    return submission(name, *map(made, range(problems)), hardware=hardware)


def several() -> list[Submission]:
    """Two that are tied, two that are not (one of which has an awkward name), one on another device."""
    return [
        model("large model, 2025-01", correct=0.9, speedup=2.2),
        model("agent with feedback", correct=0.85, speedup=2.0),
        model("small model", correct=0.5, speedup=1.2),
        model("<b>\"quoted\" & 'so'", correct=0.2, speedup=0.7),
        model("on the processor", correct=0.7, speedup=1.1, samples=1, hardware="cpu"),
    ]
