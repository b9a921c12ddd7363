"""What a launched job gave. In: Hydra's JobReturn. Out: its objectives, or the reason why there are none."""

import math
from collections.abc import Sequence

from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException

from pipeline.search.sampling.study import Answer, Failed, Measured


def answer_of(job: JobReturn, objectives: int) -> Answer:
    """The objectives of a job: a finite number, or a sequence of so many."""
    # Reading `return_value` of a failed job raises, and writes to stderr.
    given = job._return_value
    if job.status is not JobStatus.COMPLETED:
        return Failed(reason=_reason(given) if isinstance(given, BaseException) else "the job did not end")
    if given is None:
        return Failed(reason="the job returned nothing")
    numbers = list(given) if _is_sequence(given) else [given]
    if len(numbers) != objectives:
        return Failed(reason=f"the job returned {len(numbers)} values, expected {objectives}")
    try:
        values = tuple(float(number) for number in numbers)
    except (TypeError, ValueError):
        return Failed(reason=f"the job returned {given!r}, expected numbers")
    if not all(math.isfinite(value) for value in values):
        return Failed(reason=f"the job returned {', '.join(map(str, values))}")
    return Measured(values=values)


def _is_sequence(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _reason(error: BaseException) -> str:
    """The first line of what the job raised; a launcher's own errors stand for themselves."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__name__
    if isinstance(error, HydraException) and line:
        return line.removeprefix("error: ")  # as it is printed; here it becomes a part of another line
    return f"{name}: {line}" if line else name
