"""judge: a kernel that the interpreter is too slow for is tried on smaller sizes; one that hangs is not."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.hardware import Target
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import Build
from pipeline.records.record import digest, read_record, to_json
from pipeline.records.results.judged import CandidateFile, JudgeOutput, JudgeSpec, ProblemFolder
from tests.paths import ROOT
from tests.verify.harness.problems import SCALING_KERNEL, SETTINGS

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
rows, columns = 64, 64
def get_inputs():
    return [torch.randn(rows, columns)]
def get_init_inputs():
    return []
"""
CANDIDATE = (
    SCALING_KERNEL.replace("FACTOR", "2.0")
    + """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(x.numel() * SECONDS)
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
        return y
"""
)
SECONDS = {"slow": 1e-3, "hangs": 1e3}
"""That a candidate takes for each element."""


@pytest.mark.slow
def test_too_slow_for_the_interpreter(tmp_path: Path) -> None:
    """A call on 64 x 64 takes longer than it may; on a sixteenth of that, one of them is right."""
    problem = tmp_path / "problem.py"
    problem.write_text(PROBLEM)
    candidates = []
    for name, seconds in SECONDS.items():
        path = tmp_path / f"{name}.py"
        path.write_text(CANDIDATE.replace("SECONDS", str(seconds)))
        source = digest(path.read_text())
        candidates.append(CandidateFile(name=name, path=str(path), digest=source, languages=("triton",)))
    spec = JudgeSpec(
        problem=ProblemFolder(
            name="double", path=str(problem), digest=digest(PROBLEM), candidates=tuple(candidates)
        ),
        hardware="cpu",
        target=Target(kind="cpu", architecture="native", limits={}),
        device_present=True,
        device="",
        settings=msgspec.structs.replace(SETTINGS, time_limit=6.0, declared_seconds=1.0),
        build=Build(code="0", toolchain={}),
    )
    (tmp_path / "spec.json").write_bytes(to_json(spec))
    out = tmp_path / "out.json"
    command = [
        "--spec",
        str(tmp_path / "spec.json"),
        "--out",
        str(out),
        "--root",
        str(tmp_path / "artifacts"),
    ]
    subprocess.run([sys.executable, "-m", "pipeline.stages.judge", *command], cwd=ROOT, check=True)
    slow, hangs = read_record(out, JudgeOutput).verdicts
    assert slow.outcome is Outcome.PASSED_REDUCED, slow
    assert "right " in slow.reason
    assert hangs.outcome is Outcome.TIMEOUT, hangs
