"""One variant through compile, verify and profile. In: a task and a variant. Out: what the stages said of it.

The stages run as under Snakemake, each in a process that the warm worker forks: nothing of a candidate ever
comes near the process that trains. Their store is the checkout's, so that equal variants are judged once.
"""

import os
import shutil
import time
from pathlib import Path

import msgspec

from pipeline.execution.stage_commands import TIME_IS_UP, StageCommands, run_all
from pipeline.records.errors import WorkerError
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import CompileSpec, TaskRow
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.collection import Result, is_default
from pipeline.records.results.profiled import Comparison
from pipeline.records.results.variant import Generated, Variant
from pipeline.stages.table import STAGES, later, read_round, rounds
from pipeline.store.atomic import write_atomic

TRIED = later("generate")
NAME = "environment"
"""Stem of the specs' copies: no key ends so, and what is written for them is no plan's output."""


class VariantEvaluation(Record, frozen=True, kw_only=True):
    """What came of a variant."""

    result: Result
    cut: Failure | None = None
    """The step's time was up, in this stage or before it."""
    stage: str
    """The last one that it reached."""

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass."""
        return self.cut or self.result.failure

    @property
    def outcome(self) -> Outcome:
        """Of the last stage that it reached."""
        return self.failure.outcome if self.failure else Outcome.PASSED


class VariantEvaluator:
    """The stages of one task, in a scratch folder of its own."""

    def __init__(self, row: TaskRow, store: Path, scratch: Path, *, workers: int) -> None:
        self._row = row
        self._store = store.absolute()
        self._scratch = scratch
        self._folder = Path.cwd()  # of the sources that the specs name
        self._spec = read_record(spec_path(store, "compile", row.compile), CompileSpec)
        self._commands = StageCommands(scratch, workers, store=self._store)
        for stage in TRIED:
            self._spec_file(stage).parent.mkdir(parents=True)
            shutil.copyfile(spec_path(store, stage, getattr(row, stage)), self._spec_file(stage))

    def judge(self, variant: Variant, seconds: float) -> VariantEvaluation:
        """Run the stages until one fails, or the time is up.

        Raises
        ------
        WorkerError
            A stage could not do its work, which is not the variant's fault.
        """
        deadline = time.monotonic() + seconds
        result = self._result(variant)
        write_atomic(self._output("generate"), to_json(self._generated(variant)))
        for stage in TRIED:
            if not self._run(stage, deadline):
                reason = f"the step took longer than {seconds:g} s, waiting for the device included"
                cut = Failure(outcome=Outcome.TIMEOUT, reason=reason)
                return VariantEvaluation(result=result, cut=cut, stage=stage)
            result = self._with(result, stage)
            if result.failure is not None:
                break
        return VariantEvaluation(result=result, stage=result.stage)

    def _generated(self, variant: Variant) -> Generated:
        return Generated(key=NAME, round=0, variants=(variant,), pruned=(), space={})

    def _result(self, variant: Variant) -> Result:
        return Result(
            task=self._row,
            round=0,
            variant=variant,
            id=variant.id,
            default=is_default(variant, self._spec),
            architecture=self._spec.target.architecture,
            features=self._spec.target.features,
        )

    def _with(self, result: Result, stage: str) -> Result:
        """The result with what a stage wrote. Made anew: it derives some of its fields."""
        (record,) = read_round(stage, self._output(stage)).records
        known = {name: getattr(result, name) for name in ("task", "round", "variant", "id", "default")}
        known |= {name: getattr(result, name) for name in ("architecture", "features", *TRIED)}
        return Result(**(known | {stage: record}))

    def _run(self, stage: str, deadline: float) -> bool:
        """Whether it came to its end in time; the stage ends with the process that submitted it."""
        keys = {each.name: NAME for each in rounds()}
        command = msgspec.structs.replace(self._commands.of_keys(stage, keys), folder=str(self._folder))
        Path(str(command.output)).unlink(missing_ok=True)
        (ended,) = run_all([command], cores=command.cores, deadline=deadline, say=lambda _: None)
        if ended.error is not None and ended.error.startswith(TIME_IS_UP):
            return False
        if ended.error is not None:
            raise WorkerError(ended.error)
        return True

    def _spec_file(self, stage: str) -> Path:
        return STAGES[stage].spec_path(self._scratch, NAME)

    def _output(self, stage: str) -> Path:
        return STAGES[stage].output_path(self._scratch, NAME)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


CHEATED = frozenset({Outcome.TAMPERED, Outcome.OVER_ROOFLINE})
"""What touched the harness, did the work elsewhere, or is faster than the device can be."""


class Rewards(Record, frozen=True, kw_only=True):
    """How much is given for what. A verified and measured variant gets the lower bound of its speed-up."""

    failed: float = 0.0
    """For what did not verify, and for what verified and could not be measured."""
    cheated: float = -1.0
    """In place of `failed`, for what tried to cheat."""

    def __post_init__(self) -> None:
        """Nothing that did not verify may pay."""
        for field in ("failed", "cheated"):
            if not getattr(self, field) <= 0:
                raise ValueError(f"{field}: expected 0 or less, got {getattr(self, field)}")

    def of(self, judged: VariantEvaluation, baseline: str) -> float:
        """The reward against a baseline."""
        if judged.outcome in CHEATED:
            return self.cheated
        found = comparison(judged, baseline)
        return self.failed if found is None else max(0.0, found.speedup.low)


def comparison(judged: VariantEvaluation, baseline: str) -> Comparison | None:
    """The measured speed-up; None for what did not pass every stage, or where the baseline is absent."""
    measured = judged.result.profiled
    if judged.failure is not None or measured is None:
        return None
    return next((each for each in measured.comparisons if each.baseline == baseline), None)
