"""What an environment shows, and what is done in it. In: a task and its kernel. Out: observations."""

from pathlib import Path

from pipeline.execution.gym.environment_task import EnvironmentTask
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.search.brief import Brief
from pipeline.search.agents.kernel_contract import contract_of
from pipeline.search.agents.prompt_text import device_lines, promise_lines
from pipeline.search.agents.round_context import read_text


class Action(Record, frozen=True, kw_only=True):
    """What to try next; what is absent stays as it was in the step before."""

    source: str | None = None
    tunables: dict[str, TunableValue] | None = None
    """Some or all of them."""


class TunableAxis(Record, frozen=True, kw_only=True):
    """A tunable that an action may set."""

    name: str
    values: tuple[TunableValue, ...]
    default: TunableValue
    technique: str | None
    description: str


class Observation(Record, frozen=True, kw_only=True):
    """All that a writer of kernels is told: plain texts, nothing secret."""

    kernel: str
    description: str
    category: str
    language: str
    signature: str
    contract: tuple[str, ...]
    """Rules that a source keeps to: shapes, attributes, includes, what the kernel promises."""
    includes: tuple[str, ...]
    """Files in quotes that it may include; beside them system headers, and nothing else."""
    reference: str
    """Module of the PyTorch reference."""
    hardware: tuple[str, ...]
    """Facts of the target; peaks are declared, not measured."""
    axes: tuple[TunableAxis, ...]
    source: str
    """Where the next action goes on from: the start, or what was tried last."""
    tunables: dict[str, TunableValue]
    outcome: Outcome | None = None
    """Of the last step; None after a reset."""
    feedback: tuple[str, ...] = ()
    """What the stages said of it, one line each."""


def start_of(task: EnvironmentTask) -> Observation:
    """What is shown after a reset.

    Raises
    ------
    StoreError
        A source that the plan saw is gone.
    """
    brief, implementation = brief_of(task), task.implementation
    declared = read_text(Path(implementation.source))
    contract = contract_of(implementation, task.problem, task.default, declared)
    values = task.space.values
    module = task.verify.reference.partition(":")[0]
    return Observation(
        kernel=task.kernel.name,
        description=task.kernel.description,
        category=task.kernel.category,
        language=contract.language,
        signature=contract.signature,
        contract=(*contract.lines, *promise_lines(brief), *_gradient_lines(task)),
        includes=contract.includes,
        reference=read_text(Path(*module.split(".")).with_suffix(".py")),
        hardware=tuple(device_lines(brief)),
        axes=tuple(
            TunableAxis(
                name=name,
                values=values[name],
                default=task.default[name],
                technique=axis.technique,
                description=task.kernel.implementations[task.name].tunables[name].description,
            )
            for name, axis in implementation.tunables.items()
        ),
        source=task.start if task.start is not None else declared,
        tunables=task.default,
    )


def _gradient_lines(task: EnvironmentTask) -> list[str]:
    """Where the kernel returns gradients of its reference."""
    found = task.verify.gradient_of
    if found is None:
        return []
    of, given = ", ".join(found.inputs), ", ".join(found.upstream)
    return [f"the reference is differentiated: the outputs are the gradients of {of}, given {given}"]


def brief_of(task: EnvironmentTask) -> Brief:
    """The facts of kernel and device, as a language model's search is told them."""
    kernel, spec = task.kernel, task.verify
    return Brief(
        description=kernel.description,
        category=kernel.category,
        reference=spec.reference,
        reference_digest=spec.reference_digest,
        cost=kernel.cost,
        deterministic=kernel.deterministic,
        special_values=kernel.special_values,
        target=spec.target,
        device=task.device,
        peaks=task.row.peaks,
    )
