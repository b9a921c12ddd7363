"""Submissions: what one model, agent or person handed in for a folder of problems, judged and measured."""

from typing import Literal

from pipeline.records.outcome import Outcome
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, digest
from pipeline.records.results.profiled import ConfidenceInterval, Verdict

HeldOutResult = Literal[Verdict, "failed"]
"""`failed`: it could not be measured there."""


class MeasuredSpeedup(Record, frozen=True, kw_only=True):
    """A candidate against one baseline, on the declared sizes."""

    baseline: str
    speedup: ConfidenceInterval
    verdict: Verdict


class HeldOutVerdict(Record, frozen=True, kw_only=True):
    """A candidate against one baseline, on sizes that its author did not see."""

    baseline: str
    sizes: str
    """For people: `rows=127 columns=509`."""
    verdict: HeldOutResult


class CandidateTime(Record, frozen=True, kw_only=True):
    """How fast a correct candidate is."""

    seconds: ConfidenceInterval
    """Of a call."""
    speedups: tuple[MeasuredSpeedup, ...]
    """One per baseline that could be measured."""
    estimated_bound_share: float | None = None
    """Least time that the hardware allows, an estimate, over the measured time; None without a bound."""
    held_out: tuple[HeldOutVerdict, ...] = ()

    def against(self, baseline: str) -> MeasuredSpeedup | None:
        """The speed-up over one baseline; None if that was not measured."""
        return next((each for each in self.speedups if each.baseline == baseline), None)


class ScoredCandidate(Record, frozen=True, kw_only=True):
    """One sample: a candidate's verdict and time."""

    solution: str
    sample: int
    """Number among the samples of its problem."""
    outcome: Outcome
    """Of judging; of measuring if that showed that the candidate is wrong or cheats."""
    reason: str = ""
    """One line: why it did not pass, or why it passed and has no time."""
    id: str = ""
    """Of its verdict."""
    path: str = ""
    """Of its source."""
    time: CandidateTime | None = None
    """None if it was not measured."""

    def __post_init__(self) -> None:
        """No time exists without a pass."""
        if self.time is not None and not self.correct:
            raise ValueError(f"a time of a candidate with the outcome '{self.outcome}', expected 'passed'")

    @property
    def correct(self) -> bool:
        """Whether it is correct on the declared sizes; `passed_reduced` says less."""
        return self.outcome is Outcome.PASSED


class ScoredProblem(Record, frozen=True, kw_only=True):
    """One problem with a submission's samples; without any, the submission has no answer to it."""

    name: str
    digest: str
    """Of its files other than the candidates."""
    level: str | None = None
    category: str | None = None
    excluded: str = ""
    """Why no submission is scored on it: the problem itself is invalid."""
    samples: tuple[ScoredCandidate, ...] = ()


class Submission(Record, frozen=True, kw_only=True):
    """All candidates of one folder, judged for one hardware target."""

    name: str
    hardware: str
    """Name of the target."""
    device: str
    """Model of what the candidates ran on."""
    verify: str
    """Preset that judged them."""
    measured: bool
    """Whether those that passed were timed."""
    problems: tuple[ScoredProblem, ...]
    provenance: Provenance

    @property
    def key(self) -> str:
        """What a later judging of the same submission replaces."""
        return digest([self.name, self.hardware, self.device])

    @property
    def content(self) -> str:
        """Digest of what was found, whenever that was."""
        found = (self.name, self.hardware, self.device, self.verify, self.measured, self.problems)
        return digest(found)

    @property
    def problem_set(self) -> str:
        """Digest of the problems: submissions can be compared if theirs is the same."""
        return digest(sorted((problem.name, problem.digest) for problem in self.problems))

    @property
    def baselines(self) -> tuple[str, ...]:
        """Those that at least one candidate was measured against, in order."""
        times = [sample.time for problem in self.problems for sample in problem.samples]
        names = [each.baseline for time in times if time is not None for each in time.speedups]
        return tuple(dict.fromkeys(names))
