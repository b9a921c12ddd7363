"""The training environment: reset and step in; observations, rewards and verdicts out, as in Gymnasium.

A step compiles, verifies and measures one variant in the stages that every run has, in confined processes.
The reward follows from their verdict and from nothing else.
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from pipeline.execution.gym.environment_task import (
    Action,
    EnvironmentRequest,
    EnvironmentTask,
    Observation,
    start_of,
    task_of,
)
from pipeline.execution.gym.evaluation import CandidateEvaluator, Rewards, VariantEvaluation
from pipeline.performance.diagnosis import diagnose
from pipeline.performance.feedback import feedback
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import ConfidenceInterval, Verdict


class Info(Record, frozen=True, kw_only=True):
    """Details of a step; none after a reset."""

    outcome: Outcome | None
    """None after a reset."""
    stage: str | None = None
    """The last one that was reached; the one that failed, if one did."""
    reason: str | None = None
    variant: str | None = None
    """Its id; None if the action made no variant."""
    seconds: ConfidenceInterval | None = None
    """Median of a call; exists only for what verified and was measured."""
    speedup: ConfidenceInterval | None = None
    """Against the environment's baseline."""
    verdict: Verdict | None = None
    result: Result | None = None
    """Everything that the stages found."""


class Step(NamedTuple):
    """What a step returns, in Gymnasium's order."""

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class KernelEnvironment:
    """One kernel on one workload and device; a context manager, or closed by `close()`.

    Parameters
    ----------
    kernel, workload, hardware
        Names of options under conf/.
    implementation
        The implementation whose source an action replaces; by default the first that has one.
    baseline
        The baseline of speed-ups; by default the first of `profile.baselines`.
    start
        A source to start from in place of the declared one.
    overrides
        Further settings, as for `kernelmill run`: `verify=standard`, `profile.baselines=[eager]`, …
    rewards
        Rewards of failures.
    target_speedup
        The episode ends with a reward of at least this.
    steps_at_most
        The episode is truncated after this many steps.
    seconds_per_step
        A step that takes longer times out, waiting for the device included.

    Raises
    ------
    ConfigError
        A name is unknown, or nothing can be measured here.
    """

    def __init__(  # noqa: PLR0913  (the settings of an environment, each by its name)
        self,
        *,
        kernel: str,
        workload: str,
        hardware: str,
        implementation: str | None = None,
        baseline: str | None = None,
        start: str | None = None,
        overrides: tuple[str, ...] = (),
        rewards: Rewards | None = None,
        target_speedup: float | None = None,
        steps_at_most: int | None = None,
        seconds_per_step: float = 300.0,
        store: Path = Path("artifacts"),
    ) -> None:
        names = (f"kernel={kernel}", f"workload={workload}", f"hardware={hardware}")
        usual = ("optimization=full", "verify=fast", "profile=quick")
        lines = (*names, *usual, *overrides)
        wanted = EnvironmentRequest(
            lines=lines, implementation=implementation, baseline=baseline, start=start
        )
        self._task = task_of(wanted, store)
        self._start = self._observation = start_of(self._task)
        self._rewards = rewards or Rewards()
        self._target = target_speedup
        self._steps_at_most = steps_at_most
        self._steps = 0
        self._ended = False
        self._evaluator = CandidateEvaluator(self._task, self._start.includes, store, seconds_per_step)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def task(self) -> EnvironmentTask:
        """Kernel, specs and space."""
        return self._task

    @property
    def scratch(self) -> Path:
        """The folder of its files, removed by `close`."""
        return self._evaluator.scratch

    @property
    def start(self) -> Observation:
        """The observation after a reset."""
        return self._start

    def reset(self, *, seed: int | None = None) -> tuple[Observation, Info]:  # noqa: ARG002
        """Begin an episode; nothing in it depends on the seed, which Gymnasium passes.

        Raises
        ------
        ConfigError
            The environment is closed.
        """
        self._evaluator.require_open()
        self._steps, self._ended = 0, False
        self._observation = msgspec.structs.replace(self._start, tunables=dict(self._start.tunables))
        return self._observation, Info(outcome=None)

    def step(self, action: Action | str | Mapping[str, TunableValue]) -> Step:
        """Evaluate a candidate; a plain text is a source, a mapping sets tunables.

        Raises
        ------
        ConfigError
            The environment is closed, or its episode has ended.
        WorkerError
            A stage failed for a reason that is not the candidate's fault.
        """
        self._evaluator.require_open()
        if self._ended:
            raise ConfigError(f"the episode ended with step {self._steps}: reset() begins the next one")
        wanted = _action(action)
        self._steps += 1
        source = self._observation.source if wanted.source is None else wanted.source
        tunables = self._observation.tunables | (wanted.tunables or {})
        found = self._evaluator.evaluate(source, tunables)
        if isinstance(found, Failure):
            reward, info = self._refused(found)
        else:
            reward, info = self._evaluated(found)
            self._observation = msgspec.structs.replace(self._observation, source=source, tunables=tunables)
        terminated = self._target is not None and reward >= self._target
        truncated = self._steps_at_most is not None and self._steps >= self._steps_at_most
        self._ended = terminated or truncated
        return Step(self._observation, reward, terminated, truncated and not terminated, info)

    def close(self) -> None:
        """Remove the scratch folder; results stay in the store."""
        self._evaluator.close()

    def _refused(self, failure: Failure) -> tuple[float, Info]:
        """The action made no variant: the next one starts from the same source and tunables."""
        self._observation = msgspec.structs.replace(
            self._observation,
            outcome=failure.outcome,
            feedback=(f"generate: {failure.outcome}: {failure.reason}",),
        )
        info = Info(outcome=failure.outcome, stage="generate", reason=failure.reason)
        return self._rewards.failed, info

    def _evaluated(self, evaluation: VariantEvaluation) -> tuple[float, Info]:
        result, cut = evaluation.result, evaluation.time_out
        lines = feedback(result, diagnose(result, self._task.generate))
        if cut is not None:
            lines = (*lines, f"{evaluation.stage}: {cut.outcome}: {cut.reason}")
        self._observation = msgspec.structs.replace(
            self._observation, outcome=evaluation.outcome, feedback=lines
        )
        compared = evaluation.comparison(self._task.baseline)
        measured = result.profiled if evaluation.failure is None else None
        info = Info(
            outcome=evaluation.outcome,
            stage=evaluation.stage,
            reason=evaluation.failure.reason if evaluation.failure else None,
            variant=result.id,
            seconds=measured.time if measured else None,
            speedup=compared.speedup if compared else None,
            verdict=compared.verdict if compared else None,
            result=result,
        )
        return self._rewards.of(evaluation, self._task.baseline), info


def _action(action: Action | str | Mapping[str, TunableValue]) -> Action:
    if isinstance(action, Action):
        return action
    if isinstance(action, str):
        return Action(source=action)
    return Action(tunables=dict(action))
