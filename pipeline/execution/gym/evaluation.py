"""Evaluates candidates of one task: a source and tunables in, what compile, verify and profile found out.

The stages run as under Snakemake, each in a process that the warm worker forks, so a candidate cannot reach
the process that trains. They use the checkout's store: equal variants are evaluated once.
"""

import collections
import os
import shutil
import tempfile
import time
from pathlib import Path

import msgspec

from pipeline.backends.registry import backend
from pipeline.execution.gym.environment_task import EnvironmentTask
from pipeline.execution.stage_commands import TIME_IS_UP, StageCommands, run_all
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import ConfigError, WorkerError
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import CompileSpec, TaskRow
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.collection import Result, is_default
from pipeline.records.results.profiled import Comparison
from pipeline.records.results.variant import Generated, Variant
from pipeline.records.search.written_source import Author, Proposal, WrittenSource
from pipeline.search.agents.answer_parsing import foreign_file
from pipeline.search.proposed_variants import variants_of
from pipeline.stages.table import STAGES, later, read_round, rounds
from pipeline.store.atomic import write_atomic

EVALUATED = later("generate")
"""Stages that evaluate a variant."""
NAME = "environment"
"""Stem of the specs' copies: no key ends so, and no plan has outputs of that name."""
AUTHOR = Author(writer="candidates", name="environment")
RECENT = 1000
"""Evaluations that are kept in memory; older ones are read from the store."""
TRANSIENT = frozenset({Outcome.UNSTABLE_TIMING, Outcome.TIMEOUT, Outcome.DEVICE_UNAVAILABLE})
"""Outcomes that another attempt may not have: they are not kept."""
CHEATED = frozenset({Outcome.TAMPERED, Outcome.OVER_ROOFLINE})
"""The variant touched the harness, did the work elsewhere, or is faster than the device can be."""


class VariantEvaluation(Record, frozen=True, kw_only=True):
    """What the stages found for a variant."""

    result: Result
    stage: str
    """The last one that was reached."""
    time_out: Failure | None = None
    """Why the step ended before its last stage did."""

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass."""
        return self.time_out or self.result.failure

    @property
    def outcome(self) -> Outcome:
        """Of the last stage that was reached."""
        return self.failure.outcome if self.failure else Outcome.PASSED

    def comparison(self, baseline: str) -> Comparison | None:
        """The measured speed-up; None if a stage failed or the baseline is absent."""
        measured = self.result.profiled
        if self.failure is not None or measured is None:
            return None
        return next((each for each in measured.comparisons if each.baseline == baseline), None)


class Rewards(Record, frozen=True, kw_only=True):
    """Rewards of failures. A variant that was verified and measured gets the lower bound of its speed-up."""

    failed: float = 0.0
    """For what did not verify, and for what verified and could not be measured."""
    cheated: float = -1.0
    """In place of `failed`, for what tried to cheat."""

    def __post_init__(self) -> None:
        """A reward above 0 is for verified variants only."""
        for field in ("failed", "cheated"):
            if not getattr(self, field) <= 0:
                raise ValueError(f"{field}: expected 0 or less, got {getattr(self, field)}")

    def of(self, evaluation: VariantEvaluation, baseline: str) -> float:
        """The reward against a baseline."""
        if evaluation.outcome in CHEATED:
            return self.cheated
        found = evaluation.comparison(baseline)
        return self.failed if found is None else max(0.0, found.speedup.low)


class TaskStages:
    """The stages of one task, in a scratch folder of its own."""

    def __init__(self, row: TaskRow, store: Path, scratch: Path) -> None:
        self._row = row
        self._store = store.absolute()
        self._scratch = scratch
        self._folder = Path.cwd()  # of the sources that the specs name
        self._spec = read_record(spec_path(store, "compile", row.compile), CompileSpec)
        self._commands = StageCommands(scratch, len(os.sched_getaffinity(0)), store=self._store)
        for stage in EVALUATED:
            self._spec_file(stage).parent.mkdir(parents=True)
            shutil.copyfile(spec_path(store, stage, getattr(row, stage)), self._spec_file(stage))

    def run(self, variant: Variant, seconds: float) -> VariantEvaluation:
        """Run the stages until one fails, or the time is up.

        Raises
        ------
        WorkerError
            A stage failed for a reason that is not the variant's fault.
        """
        deadline = time.monotonic() + seconds
        result = self._result(variant)
        write_atomic(self._output("generate"), to_json(self._generated(variant)))
        for stage in EVALUATED:
            if not self._run_stage(stage, deadline):
                reason = f"the step took longer than {seconds:g} s, waiting for the device included"
                time_out = Failure(outcome=Outcome.TIMEOUT, reason=reason)
                return VariantEvaluation(result=result, time_out=time_out, stage=stage)
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
        """A new result with the record that a stage wrote: a result derives some of its fields."""
        (record,) = read_round(stage, self._output(stage)).records
        known = {name: getattr(result, name) for name in ("task", "round", "variant", "id", "default")}
        known |= {name: getattr(result, name) for name in ("architecture", "features", *EVALUATED)}
        return Result(**(known | {stage: record}))

    def _run_stage(self, stage: str, deadline: float) -> bool:
        """Whether the stage finished in time; it ends with the process that submitted it."""
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


class CandidateEvaluator:
    """Evaluates candidates of one task: sources of one implementation, with values of its tunables."""

    def __init__(self, task: EnvironmentTask, includes: tuple[str, ...], store: Path, seconds: float) -> None:
        self._task = task
        self._includes = includes
        self._seconds = seconds
        self._store = store.absolute()
        self._repository = Path.cwd()  # the training process may change its folder later
        self._recent: collections.OrderedDict[str, VariantEvaluation] = collections.OrderedDict()
        self._scratch = tempfile.TemporaryDirectory(prefix="kernelmill-environment-")
        self._stages: TaskStages | None = TaskStages(task.row, store, self.scratch)

    @property
    def scratch(self) -> Path:
        """The folder of its files, removed by `close`."""
        return Path(self._scratch.name)

    def require_open(self) -> TaskStages:
        """The stages.

        Raises
        ------
        ConfigError
            The environment is closed.
        """
        if self._stages is None:
            raise ConfigError("the environment is closed: make another one")
        return self._stages

    def close(self) -> None:
        """Remove the scratch folder; results stay in the store."""
        self._stages = None
        self._recent.clear()
        self._scratch.cleanup()

    def evaluate(self, source: str, tunables: dict[str, TunableValue]) -> VariantEvaluation | Failure:
        """What the stages found, from memory or from the store if it is known; a Failure for no variant.

        Raises
        ------
        ConfigError
            The environment is closed.
        WorkerError
            A stage failed for a reason that is not the candidate's fault.
        """
        stages = self.require_open()
        variant = self._variant(source, tunables)
        if isinstance(variant, Failure):
            return variant
        if variant.id in self._recent:
            self._recent.move_to_end(variant.id)
            return self._recent[variant.id]
        evaluation = stages.run(variant, self._seconds)
        if evaluation.outcome not in TRANSIENT:
            self._recent[variant.id] = evaluation
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)
        return evaluation

    def _variant(self, source: str, tunables: dict[str, TunableValue]) -> Variant | Failure:
        """The variant, with its source in the store.

        Compilers quote files that a source includes, and their messages are feedback: other files than the
        kernel's must not be readable that way.
        """
        if not self._task.space.contains(tunables):
            values = " ".join(f"{name}={value}" for name, value in tunables.items())
            return Failure(outcome=Outcome.PRUNED, reason=f"{values}: not a point of the space: see `axes`")
        if backend(self._task.implementation.backend).language.preprocessor:
            foreign = foreign_file(source, self._includes)
            if foreign is not None:
                reason = f"`{foreign}`: only system headers and what `includes` names may be included"
                return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason)
        proposal = Proposal(
            implementation=self._task.name,
            tunables=tunables,
            source=WrittenSource(text=source, author=AUTHOR),
        )
        made = variants_of(self._task.generate, [proposal], repository=self._repository, store=self._store)
        return made.variants[0] if made.variants else made.unfit[0].failure
