"""Wrong and cheating candidates are rejected for the right reason, right but awkward ones accepted."""

import contextlib
from collections.abc import Collection
from pathlib import Path

import msgspec
import pytest

from pipeline.plan.config.compose import composer
from pipeline.plan.judging import JudgingRequest, plan_judging
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.record import from_plain, read_record, to_json
from pipeline.records.results.judged import JudgeOutput, JudgeSpec
from pipeline.sandbox.models.model_problem import ModelProblem
from pipeline.stages import judge
from pipeline.stages.table import STAGES
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import model_subject, try_candidate
from tests.adversarial.suite import PROBLEMS, Key, Verdict, expected, misjudged, sources, stage
from tests.paths import ROOT
from tests.verify.conftest import one_thread  # noqa: F401  (a fixture for this module too)
from tests.verify.harness.candidate_process import SERVER

ENDLESS_SECONDS = 10.0  # of their own time for candidates that never end: the preset's minute shows no more
PORTION = 20
# One of every kind of fault that is found within two seconds; `test_all` has the others.
FEW = (
    ("softmax", "plain"),
    ("softmax", "store_without_mask"),
    ("softmax", "patched_clock"),
)


def test_every_candidate_has_an_expectation() -> None:
    """Files, patches and expected.csv name the same candidates; there are enough of either kind."""
    wanted = expected()
    assert {(folder.name, name) for folder in PROBLEMS.iterdir() for name in sources(folder)} == set(wanted)
    assert sum(row.label == "wrong" for row in wanted.values()) >= 60
    assert sum(row.label == "right" for row in wanted.values()) >= 30
    assert all((row.label == "right") == ("passed" in row.outcomes) for row in wanted.values())


@pytest.mark.slow
def test_a_few(tmp_path: Path) -> None:
    """A right candidate and one of every fast category get their verdicts, from the harness itself."""
    stage(FEW, tmp_path)
    with composer(ROOT / "conf") as composed:
        settings = from_plain(composed.option("verify", "standard"), Verify)
    verdicts = {}
    for problem in dict.fromkeys(problem for problem, _ in FEW):
        case_set = ModelCaseSet(ModelProblem(tmp_path / problem / "problem.py"), settings)
        case_set.prepare()
        for path in (tmp_path / problem / "solutions").iterdir():
            subject = model_subject(path, where="interpreter", limits={}, settings=settings)
            failure = try_candidate(SERVER, subject, case_set, tmp_path).failure
            verdicts[problem, path.stem] = (
                Verdict("passed", "") if failure is None else Verdict(failure.outcome, failure.reason)
            )
    assert misjudged(verdicts, FEW) == []


def portions() -> list[list[Key]]:
    """The candidates of each problem, at most twenty at a time, so that several workers share them."""
    found = []
    for problem in sorted({problem for problem, _ in expected()}):
        keys = [key for key in expected() if key[0] == problem]
        found += [keys[first : first + PORTION] for first in range(0, len(keys), PORTION)]
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("keys", portions(), ids=lambda keys: f"{keys[0][0]}-{keys[0][1]}")
def test_all(keys: list[Key], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every candidate gets one of the verdicts expected of it from the stage that `kernelmill judge` runs."""
    monkeypatch.setattr(judge, "ForkServer", lambda **_: contextlib.nullcontext(SERVER.started()))
    wanted = expected()
    endless = {key for key in keys if wanted[key].outcomes == {"timeout"}}
    verdicts = judged(set(keys) - endless, tmp_path / "most")
    verdicts |= judged(endless, tmp_path / "endless", time_limit=ENDLESS_SECONDS) if endless else {}
    assert misjudged(verdicts, keys) == []


def judged(keys: Collection[Key], folder: Path, **changes: object) -> dict[Key, Verdict]:
    """Verdicts of the stage with the preset `standard` but for these changes, by the shared processes."""
    stage(keys, folder / "problems")
    store = folder / "artifacts"
    planned = plan_judging(JudgingRequest(folder / "problems"), root=ROOT, store=store)
    (key,) = planned.problems
    spec = read_record(STAGES["judge"].spec_path(store, key), JudgeSpec)
    changed = msgspec.structs.replace(spec, settings=msgspec.structs.replace(spec.settings, **changes))
    (folder / "spec.json").write_bytes(to_json(changed))
    out = folder / "out.json"
    assert judge.main(["--spec", str(folder / "spec.json"), "--out", str(out), "--root", str(store)]) == 0
    return {
        (each.problem, each.solution): Verdict(each.outcome, each.reason)
        for each in read_record(out, JudgeOutput).verdicts
    }
