"""The verdict on a candidate's text, as `judge` comes to it."""

from pathlib import Path

from pipeline.records.results.judged import JudgedWhere
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.model_trial import ModelTrialResult, model_subject, try_candidate
from tests.verify.harness.candidate_process import SERVER
from tests.verify.harness.problems import SETTINGS, problem_of


def verdict_on(
    folder: Path, problem: str, candidate: str, *, where: JudgedWhere = "interpreter"
) -> ModelTrialResult:
    """With the tests' settings."""
    case_set = ModelCaseSet(problem_of(folder, problem), SETTINGS)
    case_set.prepare()
    path = folder / "candidate.py"
    path.write_text(candidate)
    subject = model_subject(path, where=where, limits={}, settings=SETTINGS)
    return try_candidate(SERVER, subject, case_set, folder)
