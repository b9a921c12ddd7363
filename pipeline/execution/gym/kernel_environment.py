"""The environment: reset and step in; observations, rewards and verdicts out, in the manner of Gymnasium.

A step compiles, verifies and measures one variant in the stages that every run has, in confined processes.
The reward follows from their verdict and from nothing else.
"""

import collections
import tempfile
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
from pipeline.execution.gym.evaluation import Rewards, VariantEvaluation, VariantEvaluator, comparison, cores
from pipeline.performance.diagnosis import diagnose
from pipeline.performance.feedback import feedback
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import ConfidenceInterval, Verdict
from pipeline.records.results.variant import Variant
from pipeline.records.search.written_source import Author, Proposal, WrittenSource
from pipeline.search.agents.answer_parsing import foreign_file
from pipeline.search.proposed_variants import variants_of

AUTHOR = Author(writer="candidates", name="environment")
REMEMBERED = 1000  # verdicts, the latest: an older one comes from the store
MAY_DIFFER = frozenset({Outcome.UNSTABLE_TIMING, Outcome.TIMEOUT, Outcome.DEVICE_UNAVAILABLE})
"""Outcomes that the next attempt may not have: they are not remembered."""


class Info(Record, frozen=True, kw_only=True):
    """What a step found out beside the reward."""

    outcome: Outcome | None
    """None after a reset."""
    stage: str | None = None
    """The last one that was reached; that of the failure, if it failed."""
    reason: str | None = None
    variant: str | None = None
    """Its id; None for what is no variant at all."""
    seconds: ConfidenceInterval | None = None
    """Median of a call; exists only for what verified and was measured."""
    speedup: ConfidenceInterval | None = None
    """Against the environment's baseline."""
    verdict: Verdict | None = None
    result: Result | None = None
    """All that the stages said."""


class Step(NamedTuple):
    """What a step gives back, in Gymnasium's order."""

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
        Whose source an action replaces; by default the first that has one.
    baseline
        What speed-ups are measured against; by default the first of `profile.baselines`.
    start
        A source to start from in place of the declared one.
    overrides
        Further settings, as for `kernelmill run`: `verify=standard`, `profile.baselines=[eager]`, …
    rewards
        What failures are given.
    target_speedup
        The episode ends with a reward of at least this.
    steps_at_most
        The episode is cut after so many steps.
    seconds_per_step
        After which a step is given up, waiting for the device included.

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
        self._space = self._task.space
        self._start = start_of(self._task)
        self._now = self._start
        self._rewards = rewards or Rewards()
        self._target = target_speedup
        self._steps_at_most = steps_at_most
        self._seconds = seconds_per_step
        self._store = store.absolute()
        self._folder = Path.cwd()  # of the sources; whoever trains may leave it
        self._steps = 0
        self._ended = False
        self._known: collections.OrderedDict[str, VariantEvaluation] = collections.OrderedDict()
        self._scratch = tempfile.TemporaryDirectory(prefix="kernelmill-environment-")
        self._chain: VariantEvaluator | None = VariantEvaluator(
            self._task.row, store, Path(self._scratch.name), workers=cores()
        )

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
    def start(self) -> Observation:
        """What a reset shows."""
        return self._start

    def reset(self, *, seed: int | None = None) -> tuple[Observation, Info]:  # noqa: ARG002
        """Begin an episode; nothing in it depends on the seed, which Gymnasium passes.

        Raises
        ------
        ConfigError
            The environment is closed.
        """
        self._open()
        self._steps, self._ended = 0, False
        self._now = msgspec.structs.replace(self._start, tunables=dict(self._start.tunables))
        return self._now, Info(outcome=None)

    def step(self, action: Action | str | Mapping[str, TunableValue]) -> Step:
        """Try an action; a plain text is a source, a mapping sets tunables.

        Raises
        ------
        ConfigError
            The environment is closed, or its episode has ended.
        WorkerError
            A stage could not do its work, which is not the candidate's fault.
        """
        chain = self._open()
        if self._ended:
            raise ConfigError(f"the episode ended with step {self._steps}: reset() begins the next one")
        wanted = _action(action)
        self._steps += 1
        source = self._now.source if wanted.source is None else wanted.source
        tunables = self._now.tunables | (wanted.tunables or {})
        found = self._variant(source, tunables)
        judged = self._judged(chain, found) if isinstance(found, Variant) else None
        reward = self._rewards.of(judged, self._task.baseline) if judged else self._rewards.failed
        info = self._info(judged) if judged else _refused(found)
        self._now = msgspec.structs.replace(
            self._now,
            source=source if judged else self._now.source,
            tunables=tunables if judged else self._now.tunables,
            outcome=info.outcome,
            feedback=self._feedback(judged, info),
        )
        terminated = self._target is not None and reward >= self._target
        truncated = self._steps_at_most is not None and self._steps >= self._steps_at_most
        self._ended = terminated or truncated
        return Step(self._now, reward, terminated, truncated and not terminated, info)

    def close(self) -> None:
        """Remove the scratch folder; what was judged stays in the store."""
        self._chain = None
        self._known.clear()
        self._scratch.cleanup()

    def _open(self) -> VariantEvaluator:
        if self._chain is None:
            raise ConfigError("the environment is closed: make another one")
        return self._chain

    def _variant(self, source: str, tunables: dict[str, TunableValue]) -> Variant | Failure:
        """The variant, its source in the store; or why it is none.

        What compilers say of a file that is not the kernel's would come back as feedback.
        """
        if not self._space.contains(tunables):
            values = " ".join(f"{name}={value}" for name, value in tunables.items())
            return Failure(outcome=Outcome.PRUNED, reason=f"{values}: not a point of the space: see `axes`")
        foreign = None
        if self._task.implementation.backend != "triton":
            foreign = foreign_file(source, self._start.includes)
        if foreign is not None:
            reason = f"`{foreign}`: only system headers and what `includes` names may be included"
            return Failure(outcome=Outcome.COMPILE_ERROR, reason=reason)
        proposal = Proposal(
            implementation=self._task.name,
            tunables=tunables,
            source=WrittenSource(text=source, author=AUTHOR),
        )
        made = variants_of(self._task.generate, [proposal], repository=self._folder, store=self._store)
        return made.variants[0] if made.variants else made.unfit[0].failure

    def _judged(self, chain: VariantEvaluator, variant: Variant) -> VariantEvaluation:
        """From memory, from the store, or by the stages."""
        identity = variant.id
        if identity in self._known:
            self._known.move_to_end(identity)
            return self._known[identity]
        judged = chain.judge(variant, self._seconds)
        if judged.outcome not in MAY_DIFFER:
            self._known[identity] = judged
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return judged

    def _info(self, judged: VariantEvaluation) -> Info:
        found = comparison(judged, self._task.baseline)
        measured = judged.result.profiled if judged.failure is None else None
        return Info(
            outcome=judged.outcome,
            stage=judged.stage,
            reason=judged.failure.reason if judged.failure else None,
            variant=judged.result.id,
            seconds=measured.timing.median if measured else None,
            speedup=found.speedup if found else None,
            verdict=found.verdict if found else None,
            result=judged.result,
        )

    def _feedback(self, judged: VariantEvaluation | None, info: Info) -> tuple[str, ...]:
        if judged is None:
            return (f"generate: {info.outcome}: {info.reason}",)
        lines = feedback(judged.result, diagnose(judged.result, self._task.generate))
        return (*lines, f"{judged.stage}: {judged.cut.outcome}: {judged.cut.reason}") if judged.cut else lines


def _action(action: Action | str | Mapping[str, TunableValue]) -> Action:
    if isinstance(action, Action):
        return action
    if isinstance(action, str):
        return Action(source=action)
    return Action(tunables=dict(action))


def _refused(found: Variant | Failure) -> Info:
    assert isinstance(found, Failure)
    return Info(outcome=found.outcome, stage="generate", reason=found.reason)
