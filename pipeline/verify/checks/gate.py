"""The registry of checks, and the gate that a variant must pass.

Adding a check is one module and one line in `CHECKS`. The order decides the outcome if several would fail:
the fault to fix first comes first. The gate fails closed: a variant passes only if every check has judged
it. In: observations of one variant's calls. Out: the first failure, and at the end the results of each
check.
"""

import time
from collections.abc import Mapping

from pipeline.records.outcome import Failure
from pipeline.records.results.verified import CheckResult
from pipeline.verify.checks.call_observation import CallObservation, Check, NotApplicable, Passed
from pipeline.verify.checks.determinism import check_determinism
from pipeline.verify.checks.guards import check_guards
from pipeline.verify.checks.input_mutation import check_input_mutation
from pipeline.verify.checks.late_writes import check_late_writes
from pipeline.verify.checks.memory import check_memory
from pipeline.verify.checks.metadata import check_metadata
from pipeline.verify.checks.own_work import check_own_work
from pipeline.verify.checks.races import check_races
from pipeline.verify.checks.tampering import check_tampering
from pipeline.verify.checks.unwritten import check_unwritten
from pipeline.verify.checks.value import check_value

CHECKS: dict[str, Check] = {
    "tampering": check_tampering,
    "metadata": check_metadata,
    "races": check_races,
    "memory": check_memory,
    "guards": check_guards,
    "mutation": check_input_mutation,
    "completion": check_late_writes,
    "written": check_unwritten,
    "determinism": check_determinism,
    "value": check_value,
    "work": check_own_work,
}


class GateBug(RuntimeError):
    """A check did not answer as it must, or never ran: a bug of the pipeline, never a pass."""


class Gate:
    """Judges one variant; make a new one for each."""

    def __init__(self, checks: Mapping[str, Check] = CHECKS) -> None:
        if not checks:
            raise GateBug("a gate without checks would let everything pass")
        self._checks = dict(checks)
        self._passed = dict.fromkeys(checks, 0)
        self._seconds = dict.fromkeys(checks, 0.0)
        self._failed = False
        self.worst_share = 0.0
        self.worst_error = 0.0
        self.differing = 0
        self.compared = 0

    def judge(self, observation: CallObservation) -> Failure | None:
        """Ask every check about one call; the first failure ends it."""
        for name, check in self._checks.items():
            started = time.perf_counter()
            judgement = check(observation)
            self._seconds[name] += time.perf_counter() - started
            if isinstance(judgement, Failure):
                self._failed = True
                return judgement
            if isinstance(judgement, Passed):
                self._passed[name] += 1
                self.worst_share = max(self.worst_share, judgement.share)
                self.worst_error = max(self.worst_error, judgement.error)
                self.differing += judgement.differing
                self.compared += judgement.compared
            elif not isinstance(judgement, NotApplicable):
                self._failed = True
                raise GateBug(
                    f"check '{name}' answered {judgement!r}, expected Passed, NotApplicable or Failure"
                )
        return None

    def results(self) -> tuple[CheckResult, ...]:
        """What each check did so far."""
        return tuple(
            CheckResult(check=name, cases=self._passed[name], seconds=self._seconds[name])
            for name in self._checks
        )

    def require_all(self, calls: int, *, without: frozenset[str] = frozenset()) -> None:
        """Raise GateBug unless no check failed, and each let at least one call pass.

        `without`: checks that need what this machine or the variant does not have; their results say 0 calls.
        """
        idle = [name for name, count in self._passed.items() if count == 0 and name not in without]
        if self._failed or calls == 0 or idle:
            raise GateBug(f"{calls} calls judged, failed: {self._failed}, checks that never passed: {idle}")
