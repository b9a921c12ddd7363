"""Failures of a run: one line for each distinct reason, and whether anything succeeded."""

import json
from pathlib import Path

import pytest

from pipeline.execution.failure_listing import failure_lines, find_outcome, judged_reasons
from pipeline.records.outcome import Outcome
from pipeline.records.results.judged import Verdict
from pipeline.stages.table import STAGES
from tests.execution.test_workflow import workflow

PASSED = {"type": "passed"}


def failed(outcome: str, reason: str) -> dict[str, str]:
    """A result as records have it."""
    return {"type": "failure", "outcome": outcome, "reason": reason}


def write(root: Path, stage: str, key: str, *results: dict[str, str]) -> None:
    """As much of a stage's output as is read."""
    path = root / stage / key / "round0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [
        {"variant": {"implementation": "cpp", "tunables": {"LANES": n}}, "entry": f"e{n}", "result": result}
        for n, result in enumerate(results)
    ]
    path.write_text(json.dumps({"records": records}))


def test_one_line_for_each_reason(tmp_path: Path) -> None:
    """Reasons that differ in numbers are one, with the first of them and how many there are."""
    plan = workflow().plan
    write(tmp_path, "compile", "c-1", PASSED, PASSED, PASSED, failed("compile_error", "a.cpp:3: no type"))
    values = [failed("wrong_value", f"y[{n}]: got {n}.5, expected 1e-0{n}") for n in (1, 2)]
    write(tmp_path, "verify", "v-1", PASSED, *values)
    outcome = find_outcome(plan, tmp_path)
    assert [(each.outcome, each.count) for each in outcome.failures] == [
        (Outcome.COMPILE_ERROR, 1),
        (Outcome.WRONG_VALUE, 2),
    ]
    assert (outcome.variants, outcome.passed, outcome.succeeded) == (4, 1, True)
    text = "\n".join(failure_lines(outcome.failures))
    assert "softmax w cpu cpp: wrong_value: y[1]: got 1.5, expected 1e-01 (2x)" in text
    assert "LANES=1" in text


def test_who_wrote_what_failed(tmp_path: Path) -> None:
    """Sources that a search wrote have equal tunables: only their authors tell them apart."""
    plan = workflow().plan
    write(tmp_path, "verify", "v-1", failed("wrong_value", "y"))
    path = tmp_path / "verify" / "v-1" / "round0.json"
    output = json.loads(path.read_text())
    output["records"][0]["variant"] |= {"written": True, "source_digest": "s"}
    path.write_text(json.dumps(output))
    author = {"writer": "candidates", "name": "fast.cpp"}
    generated = STAGES["generate"].output_path(tmp_path, plan.tasks[0].row.generate)
    generated.parent.mkdir(parents=True)
    sources = [{"entry": "s", "implementation": "cpp", "author": author}]
    generated.write_text(json.dumps({"records": sources}))
    assert [each.variant for each in find_outcome(plan, tmp_path).failures] == [
        "(candidates: fast.cpp) LANES=0"
    ]


@pytest.mark.parametrize(
    ("verified", "succeeded"),
    [
        (failed("wrong_value", "y"), False),
        (failed("device_unavailable", "no GPU"), True),
        (failed("pruned", "slow"), True),
    ],
)
def test_nothing_succeeded(tmp_path: Path, verified: dict[str, str], succeeded: bool) -> None:
    """An absent device is no fault of a kernel; wrong values of all variants are a failure of the run."""
    write(tmp_path, "compile", "c-1", PASSED)
    write(tmp_path, "verify", "v-1", verified)
    assert find_outcome(workflow().plan, tmp_path).succeeded is succeeded


def test_rejected_candidates(tmp_path: Path) -> None:
    """Each with its reason and the command that makes the failed call again; what passed is not named."""
    verdicts = [
        Verdict(problem="p", solution="a", outcome=Outcome.PASSED),
        Verdict(problem="p", solution="b", outcome=Outcome.TAMPERED, reason="PyTorch did it", id="0123abcd"),
    ]
    _, *lines = failure_lines(judged_reasons(verdicts, tmp_path))
    assert [line.strip() for line in lines] == [
        "p/b: tampered: PyTorch did it",
        "kernelmill judge --repeat 0123abcd",
    ]
