"""Right candidates are timed; here on the CPU, which stands for the device."""

from pathlib import Path

import pytest

from pipeline.backends.devices.device_registry import HOST
from pipeline.execution.device_check import checked_candidates
from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.checked_candidates import KnownCandidate
from pipeline.execution.device_check.checked_times import check_candidate_time
from pipeline.records.outcome import Outcome

CANDIDATE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        BEFORE
        return torch.add(1, x, alpha=2)
"""


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "status", "detail"),
    [
        ("pass", "ok", "speed-up over eager PyTorch "),
        ("raise ValueError('no such luck')", "failed", "no such luck"),
    ],
)
def test_times(
    before: str, status: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a speed-up, or why there is none."""
    known = KnownCandidate(CANDIDATE.replace("BEFORE", before), (Outcome.PASSED,))
    monkeypatch.setitem(checked_candidates.CANDIDATES, "right", known)
    setting = CheckSetting(kind=HOST, device="a CPU", folder=str(tmp_path), subject="right")
    answer = check_candidate_time(setting)
    assert answer.status == status, answer
    assert detail in answer.detail


def test_without_a_device(tmp_path: Path) -> None:
    """Nothing is timed."""
    setting = CheckSetting(kind="cuda", absence="no driver", folder=str(tmp_path), subject="right, Triton")
    answer = check_candidate_time(setting)
    assert (answer.status, answer.detail) == ("absent", "no driver")
