"""timing: what passed is measured against Model, and who does something else when it is timed is refused."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.hardware import Target
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import Build
from pipeline.records.record import digest, read_record, to_json
from pipeline.records.results.judged import CandidateFile, JudgeOutput, ProblemFolder, Verdict
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.timed import TimedRecord, TimingOutput, TimingSpec
from tests.measure.clean import THIS_CPU, call
from tests.measure.problems import settings

pytestmark = pytest.mark.alone

PROBLEM = """
import torch

rows = 128
columns = 2048

class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        y = x * self.weight
        for _ in range(4):
            y = y + x
        return y

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return [columns]
"""
CANDIDATE = """
import time
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(columns))
        self.calls = 0
        self.kept = None

    def compute(self, x):
        y = x * self.weight
        for _ in range(4):
            y = y + x
        return y

    def forward(self, x):
        self.calls += 1
        {body}
"""
COPY = CANDIDATE.format(body="return self.compute(x)")
FUSED = CANDIDATE.format(body="return torch.addcmul(x * 4, x, self.weight)")
SLOWER = CANDIDATE.format(body="return self.compute(self.compute(x) * 0 + x)")
STALE = CANDIDATE.format(
    body="""if self.kept is None or self.calls < 10:
            self.kept = self.compute(x)
        return self.kept"""
)
"""Right in its first calls, as when it was judged; then it returns what it has."""
BY_VERSION = CANDIDATE.format(
    body="""key = (x.data_ptr(), x._version)
        if self.kept is None or self.kept[0] != key:
            self.kept = (key, self.compute(x))
        return self.kept[1]"""
)
"""Recomputes where an address or PyTorch's count of changes is another one."""
BY_VALUE = CANDIDATE.format(
    body="""if self.kept is None or not torch.equal(self.kept[0], x):
            self.kept = (x.clone(), self.compute(x))
            for _ in range(20):
                self.compute(x)
        return self.kept[1]"""
)
"""Always right, and slow on inputs that it has not just seen."""
HANGS = CANDIDATE.format(
    body="""if self.calls > 20:
            time.sleep(1000)
        return self.compute(x)"""
)
ONLY_DECLARED = CANDIDATE.format(
    body="""if x.shape[0] == 128:
            return torch.addcmul(x * 4, x, self.weight)
        return self.compute(self.compute(x) * 0 + x)"""
)
REFUSES = CANDIDATE.format(body="raise RuntimeError('not today')")
SPEC = TimingSpec(
    parent="judge-0",
    problem=ProblemFolder(name="chain", path="", digest=digest(PROBLEM), candidates=()),
    hardware="cpu",
    target=Target(kind="cpu", architecture="native", limits={}),
    device_present=True,
    device=THIS_CPU,
    settings=settings(time_limit=5.0, seconds_per_variant=0.3),
    held_out=settings(),
    build=Build(code="0", toolchain={}),
)


class Desk:
    """The stage's input files, and its command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "artifacts"
        self.problem = folder / "problem.py"
        self.problem.write_text(PROBLEM)
        self.out = folder / "out.json"

    def arguments(self, spec: TimingSpec, verdicts: dict[str, Verdict], sources: dict[str, str]) -> list[str]:
        """Write the files; returns the command line."""
        files = []
        for name, text in sources.items():
            path = self.folder / f"{name}.py"
            path.write_text(text)
            files.append(CandidateFile(name=name, path=str(path), digest=digest(text)))
        problem = msgspec.structs.replace(spec.problem, path=str(self.problem), candidates=tuple(files))
        judged = JudgeOutput(key="judge-0", verdicts=tuple(verdicts.values()))
        line = ["--root", str(self.root), "--out", str(self.out)]
        for name, record in (("spec", msgspec.structs.replace(spec, problem=problem)), ("judged", judged)):
            path = self.folder / f"{name}.json"
            path.write_bytes(to_json(record))
            line += [f"--{name}", str(path)]
        return line

    def run(
        self, sources: dict[str, str], spec: TimingSpec = SPEC, **verdicts: Verdict
    ) -> dict[str, TimedRecord]:
        """Run the stage, again if the machine was too busy; all candidates passed unless told otherwise."""
        for _ in range(4):
            (self.folder / "log.txt").unlink(missing_ok=True)
            given = {name: verdicts.get(name, passed(name)) for name in sources}
            line = self.arguments(spec, given, sources)
            assert call("pipeline.stages.timing:main", self.folder / "log.txt", line, seconds=300) == 0
            records = read_record(self.out, TimingOutput).records
            if not any(outcome(record) is Outcome.UNSTABLE_TIMING for record in records):
                break
        return {record.solution: record for record in records}

    @property
    def said(self) -> str:
        """What the stage printed."""
        return (self.folder / "log.txt").read_text()


def passed(name: str, outcome: Outcome = Outcome.PASSED) -> Verdict:
    """A verdict."""
    return Verdict(problem="chain", solution=name, outcome=outcome, where="host")


def outcome(record: TimedRecord) -> Outcome:
    """How its measurement ended."""
    return record.result.outcome if isinstance(record.result, Failure) else Outcome.PASSED


def reason(record: TimedRecord) -> str:
    """Why it has no time."""
    assert isinstance(record.result, Failure)
    return record.result.reason


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A problem without candidates."""
    return Desk(tmp_path)


def test_verdicts_and_bound(desk: Desk) -> None:
    """Faster, indistinguishable and slower; each has a share of an estimated bound, and no formula's."""
    records = desk.run({"fused": FUSED, "copy": COPY, "slower": SLOWER})
    said = {}
    for name, record in records.items():
        assert isinstance(record.result, Profiled), record.result
        compared = record.compared("eager")
        assert compared is not None
        said[name] = compared.verdict
        assert record.result.roofline_share is None
        assert record.bound_share is not None and 0 < record.bound_share < 1.1
    if said["copy"] != "indistinguishable":  # one interval of twenty misses the truth, two in a row hardly
        again = desk.run({"copy": f"{COPY}\n# again"})["copy"].compared("eager")
        assert again is not None
        said["copy"] = again.verdict
    assert said == {"fused": "faster", "copy": "indistinguishable", "slower": "slower"}
    bound = records["fused"].estimate
    assert bound is not None
    assert (bound.read, bound.written) == ((128 + 1) * 2048 * 4, 128 * 2048 * 4)
    assert (bound.matrix_flops, bound.vector_flops) == (0, 5 * 128 * 2048)


@pytest.mark.slow
def test_what_was_refused_has_no_time(desk: Desk) -> None:
    """What was judged on reduced sizes is timed, and says so."""
    wrong = passed("wrong", Outcome.WRONG_VALUE)
    reduced = passed("reduced", Outcome.PASSED_REDUCED)
    records = desk.run({"wrong": COPY, "reduced": FUSED}, wrong=wrong, reduced=reduced)
    assert list(records) == ["reduced"]
    assert isinstance(records["reduced"].result, Profiled)
    assert any(note.startswith("judged on reduced sizes") for note in records["reduced"].result.notes)


@pytest.mark.slow
def test_results_that_are_kept(desk: Desk) -> None:
    """Whatever they are kept by, the candidate has no time."""
    records = desk.run({"stale": STALE, "version": BY_VERSION, "value": BY_VALUE})
    assert outcome(records["stale"]) is Outcome.WRONG_VALUE
    assert reason(records["stale"]).startswith("compared with Model after the timed calls: ")
    assert outcome(records["version"]) in (Outcome.NONDETERMINISTIC, Outcome.WRONG_VALUE)
    assert outcome(records["value"]) is Outcome.TAMPERED
    assert reason(records["value"]).endswith("if one element is new: it keeps results")


@pytest.mark.slow
def test_one_that_hangs_and_one_that_raises(desk: Desk) -> None:
    """Each is its own outcome; the others are measured."""
    spec = msgspec.structs.replace(SPEC, settings=settings(time_limit=4.0))
    records = desk.run({"hangs": HANGS, "refuses": REFUSES, "fused": FUSED}, spec)
    assert {name: outcome(record) for name, record in records.items()} == {
        "hangs": Outcome.TIMEOUT,
        "refuses": Outcome.LAUNCH_ERROR,
        "fused": Outcome.PASSED,
    }
    assert reason(records["refuses"]) == "RuntimeError: not today"


@pytest.mark.slow
def test_fast_on_the_declared_sizes_only(desk: Desk) -> None:
    """Sizes that the problem does not declare show it."""
    records = desk.run({"declared": ONLY_DECLARED, "fused": FUSED, "slower": SLOWER})
    sizes = [each.sizes for each in records["fused"].held_out]
    assert sizes == [{"rows": 65, "columns": 1025}, {"rows": 97, "columns": 1537}]
    assert records["declared"].only_declared("eager") == tuple(sizes)
    assert records["fused"].only_declared("eager") == ()
    assert records["slower"].held_out == ()  # nothing to lose there


def test_an_absent_device(desk: Desk) -> None:
    """Nothing is measured, and nothing kept."""
    target = Target(kind="cuda", architecture="sm_90", limits={})
    spec = msgspec.structs.replace(SPEC, target=target, device_present=False, device="absent")
    (record,) = desk.run({"fused": FUSED}, spec).values()
    assert (outcome(record), reason(record)) == (
        Outcome.DEVICE_UNAVAILABLE,
        "no sm_90 device on this machine",
    )
    assert not entry_path(desk.root, "timing", record.entry).exists()


def test_an_interpreted_candidate(desk: Desk) -> None:
    """Its time in an interpreter would be none of its own."""
    verdict = msgspec.structs.replace(passed("triton"), where="interpreter")
    (record,) = desk.run({"triton": FUSED}, triton=verdict).values()
    assert reason(record) == "its kernels run in an interpreter here: a time needs their device"


@pytest.mark.slow
def test_killed_in_the_middle(desk: Desk) -> None:
    """What was measured before is kept, and one more candidate costs only itself."""
    sources = {f"copy{number}": f"{FUSED}\n# {number}\n" for number in range(4)}
    line = desk.arguments(SPEC, {name: passed(name) for name in sources}, sources)
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.stages.timing", *line],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + 120
    while len(list((desk.root / "store" / "timing").glob("??/[0-9a-f]*/record.json"))) < 2:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not desk.out.exists()
    records = desk.run(sources)
    assert all(isinstance(record.result, Profiled) for record in records.values())
    assert "4 candidates: 4 passed (" in desk.said and "cached" in desk.said
    again = desk.run({**sources, "same": sources["copy0"]})
    assert "5 passed (5 cached)" in desk.said
    assert again["same"].result == again["copy0"].result
