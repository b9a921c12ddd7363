"""Wrong and cheating candidates are rejected for the right reason, right but awkward ones accepted."""

from pathlib import Path

import pytest

from pipeline.plan.config.compose import composer
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.record import from_plain
from pipeline.verify.candidates.model_problem import ModelProblem
from pipeline.verify.harness.returning.case_set import CaseSet
from pipeline.verify.harness.returning.session import TrialSubject
from pipeline.verify.harness.returning.trial import try_candidate
from tests.adversarial.suite import PROBLEMS, Verdict, expected, judge, misjudged, sources, stage
from tests.paths import ROOT
from tests.verify.conftest import one_thread  # noqa: F401  (a fixture for this module too)
from tests.verify.harness.returning.candidate_process import SERVER

# One of every kind of fault that is found within two seconds; `test_all` has the others.
FEW = (
    ("softmax", "plain"),
    ("softmax", "zeros"),
    ("softmax", "tail_unwritten"),
    ("softmax", "store_without_mask"),
    ("softmax", "half_sum"),
    ("softmax", "returns_double"),
    ("softmax", "extra_axis"),
    ("softmax", "negates_and_restores"),
    ("softmax", "before_copy_kernel"),
    ("softmax", "patched_clock"),
    ("softmax", "first_call_of_each_shape"),
    ("softmax", "leaves_with_zero"),
    ("softmax", "syntax_error"),
    ("mean_product", "zeros"),
)


def test_every_candidate_has_an_expectation() -> None:
    """Files, patches and expected.csv name the same candidates; there are enough of either kind."""
    wanted = expected()
    assert {(folder.name, name) for folder in PROBLEMS.iterdir() for name in sources(folder)} == set(wanted)
    assert sum(row.label == "wrong" for row in wanted.values()) >= 60
    assert sum(row.label == "right" for row in wanted.values()) >= 30
    assert all((row.label == "right") == ("passed" in row.outcomes) for row in wanted.values())


def test_a_few(tmp_path: Path) -> None:
    """A right candidate and one of every fast category get their verdicts, from the harness itself."""
    stage(FEW, tmp_path)
    with composer(ROOT / "conf") as composed:
        settings = from_plain(composed.option("verify", "standard"), Verify)
    verdicts = {}
    for problem in dict.fromkeys(problem for problem, _ in FEW):
        case_set = CaseSet(ModelProblem(tmp_path / problem / "problem.py"), settings)
        case_set.prepare()
        for path in (tmp_path / problem / "solutions").iterdir():
            subject = TrialSubject(
                source=str(path), text=path.read_text(), where="interpreter", limits={}, settings=settings
            )
            failure = try_candidate(SERVER, subject, case_set, tmp_path).failure
            verdicts[problem, path.stem] = (
                Verdict("passed", "") if failure is None else Verdict(failure.outcome, failure.reason)
            )
    assert misjudged(verdicts, FEW) == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_all(tmp_path) -> None:
    """Every candidate of the suite gets one of the verdicts expected of it."""
    stage(expected(), tmp_path / "problems")
    verdicts = judge(tmp_path / "problems", tmp_path / "verdicts.csv")
    assert misjudged(verdicts, expected()) == []
