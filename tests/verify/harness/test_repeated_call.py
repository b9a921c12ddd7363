"""A repeated call shows the fault that was found: alone, or after the calls before it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.verify.harness.failed_call import FailedCall
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from tests.paths import ROOT
from tests.verify.harness.candidate_process import SERVER
from tests.verify.harness.problems import SETTINGS, problem_of
from tests.verify.harness.test_slow_interpreter import PROBLEM

KERNEL = """
import threading, time, torch, triton, triton.language as tl
@triton.jit
def double(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)
def launch(x, y):
    double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
    return y
def late(x, y):
    time.sleep(0.05)
    launch(x, y)
kept = {}
class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
"""
KEPT_BY_SHAPE = "return kept.setdefault(x.shape, launch(x, torch.empty_like(x))).clone()"
ONE_RESULT = "return launch(x, kept.setdefault(x.shape, torch.empty_like(x)))"
AFTER_RETURN = "y = torch.empty_like(x); threading.Thread(target=late, args=(x, y)).start(); return y"
BY_TORCH = "return x + x"
REPEAT = """
import sys
from pathlib import Path
from pipeline.verify.harness.failed_call import read_failed_call
from pipeline.verify.harness.repeated_call import RepeatedCall
repeated = RepeatedCall(read_failed_call(Path(sys.argv[1])))
for failure in (repeated.alone(), repeated.in_sequence()):
    print(None if failure is None else failure.reason)
"""


def tried(folder: Path, forward: str) -> ModelTrialResult:
    """A candidate with such a `forward`, with its failed call in the folder."""
    case_set = ModelCaseSet(problem_of(folder, PROBLEM), SETTINGS)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(f"{KERNEL}        {forward}\n")
    subject = model_subject(path, where="interpreter", limits={}, settings=SETTINGS)
    result = try_candidate(SERVER, subject, case_set, folder)
    assert result.failure is not None
    FailedCall(
        problem=str(folder / "problem.py"), candidate=str(path), where="interpreter", device="cpu", limits={},
        settings=SETTINGS, failure=result.failure, calls=result.until_failure,
    ).write(folder)  # fmt: skip
    return result


def repeated(folder: Path) -> list[str]:
    """What is wrong now, alone and in sequence."""
    command = [sys.executable, "-c", REPEAT, str(folder)]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()[-2:]


@pytest.mark.slow
@pytest.mark.parametrize("forward", [KEPT_BY_SHAPE, ONE_RESULT])
def test_what_a_candidate_keeps_shows_after_the_calls_before(tmp_path: Path, forward: str) -> None:
    """The same element of the same inputs, or the same sentence."""
    result = tried(tmp_path, forward)
    assert result.failure is not None
    assert result.calls >= len(result.until_failure) > 1
    alone, in_sequence = repeated(tmp_path)
    assert alone == "None"
    assert result.failure.reason.startswith(in_sequence)


@pytest.mark.slow
def test_late_work_shows_alone(tmp_path: Path) -> None:
    """The repeated call waits as well; a failure in the first call counts it."""
    result = tried(tmp_path, AFTER_RETURN)
    assert result.calls == 2, "it was called again, to see what changes"
    assert repeated(tmp_path)[0] == "output 0: changed after the call had returned"


@pytest.mark.slow
def test_work_that_is_not_its_own(tmp_path: Path) -> None:
    """The call is the one that the reason names, and no note says the same again as if it were allowed."""
    result = tried(tmp_path, BY_TORCH)
    assert result.failure is not None
    assert result.until_failure[-1].condition.label in result.failure.reason
    assert not [note for note in result.notes if "PyTorch" in note]
