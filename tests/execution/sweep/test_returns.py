"""What a job gave."""

import numpy as np
import pytest
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException

from pipeline.execution.sweep.optuna_sweeper import answer_of
from pipeline.search.sampling.study import Failed, MeasuredPoint


def returned(status: JobStatus, given) -> JobReturn:
    """What Hydra hands a sweeper."""
    job = JobReturn(status=status)
    job.return_value = given
    return job


@pytest.mark.parametrize(
    ("given", "objectives", "values"),
    [
        (1.5, 1, (1.5,)),
        (2, 1, (2.0,)),
        (np.float32(0.5), 1, (0.5,)),
        ([1, 2.0], 2, (1.0, 2.0)),
        ([3], 1, (3.0,)),
    ],
)
def test_numbers(given, objectives: int, values) -> None:
    """Numbers of any kind, one or a sequence."""
    assert answer_of(returned(JobStatus.COMPLETED, given), objectives) == MeasuredPoint(values=values)


@pytest.mark.parametrize(
    ("status", "given", "reason"),
    [
        (JobStatus.FAILED, ValueError("first line\nsecond"), "ValueError: first line"),
        (JobStatus.FAILED, ValueError(), "ValueError"),
        (JobStatus.FAILED, HydraException("error: softmax: not verified"), "softmax: not verified"),
        (JobStatus.UNKNOWN, None, "the job did not end"),
        (JobStatus.COMPLETED, None, "the job returned nothing"),
        (JobStatus.COMPLETED, float("nan"), "the job returned nan"),
        (JobStatus.COMPLETED, -float("inf"), "the job returned -inf"),
        (JobStatus.COMPLETED, "fast", "the job returned 'fast', expected numbers"),
        (JobStatus.COMPLETED, [1, 2], "the job returned 2 values, expected 1"),
    ],
)
def test_reasons(status: JobStatus, given, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No number is made up; nothing is written to the terminal."""
    assert answer_of(returned(status, given), 1) == Failed(reason=reason)
    assert capsys.readouterr() == ("", "")
