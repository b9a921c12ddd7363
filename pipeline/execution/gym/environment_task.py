"""The task of a training environment: kernel, workload and device in, specs and observations out."""

import threading
from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.local_machine import read_machine
from pipeline.plan.plan_cache import current_plan
from pipeline.plan.plan_inputs import gather_inputs
from pipeline.records.configuration.kernel import Implementation, Kernel, TunableValue
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import GenerateSpec, ProfileSpec, TaskRow, VerifySpec
from pipeline.records.record import Record, read_record
from pipeline.records.search.brief import Brief
from pipeline.search.agents.kernel_contract import contract_of
from pipeline.search.agents.prompts import device_lines, promise_lines
from pipeline.search.agents.round_context import read_text
from pipeline.search.spaces.search_space import Subspace, space_of

_PLANNING = threading.Lock()
"""Hydra has one state for all threads of a process."""
SETTINGS = ("search=grid", "search.variants_per_round=1", "tracking=disabled")


class EnvironmentTask(Record, frozen=True, kw_only=True):
    """One implementation of a kernel on one workload and device."""

    kernel: Kernel
    row: TaskRow
    generate: GenerateSpec
    verify: VerifySpec
    name: str
    """Name of the implementation whose source is replaced."""
    default: dict[str, TunableValue]
    baseline: str
    device: str | None
    """Model name, if the machine reports it."""
    start: str | None = None
    """Text to start from; None: the declared source."""

    @property
    def implementation(self) -> Implementation:
        """With the space of its tunables."""
        return self.generate.implementations[self.name]

    @property
    def space(self) -> Subspace:
        """Values that its tunables may have for this task."""
        return next(each for each in space_of(self.generate).subspaces if each.implementation == self.name)

    @property
    def problem(self) -> Problem:
        """Kernel and workload."""
        return self.generate.problem


class EnvironmentRequest(Record, frozen=True, kw_only=True):
    """What the user chose."""

    lines: tuple[str, ...]
    """Overrides, as for `kernelmill run`."""
    implementation: str | None
    baseline: str | None
    start: str | None


def task_of(wanted: EnvironmentRequest, store: Path) -> EnvironmentTask:
    """Plan the task, and check that it can be measured on this machine.

    Raises
    ------
    ConfigError
        A name is unknown, the lines mean several tasks, or no reward could be measured here.
    """
    lines = (*SETTINGS, *wanted.lines)
    with _PLANNING:
        plan = current_plan(lines, root=Path.cwd(), store=store)
        (inputs,) = gather_inputs((lines,), Path.cwd(), read_machine())
    if len(plan.tasks) != 1:
        raise ConfigError(f"an environment is one task, {' '.join(wanted.lines)} gives {len(plan.tasks)}")
    row = plan.tasks[0].row
    if not row.device_present:
        raise ConfigError(f"hardware={row.hardware}: no such device here, and a reward is measured on it")
    generate = read_record(spec_path(store, "generate", row.generate), GenerateSpec)
    profile = read_record(spec_path(store, "profile", row.profile), ProfileSpec)
    name = _implementation(generate, wanted.implementation)
    return EnvironmentTask(
        kernel=inputs.kernels[row.kernel],
        row=row,
        generate=generate,
        verify=read_record(spec_path(store, "verify", row.verify), VerifySpec),
        name=name,
        default=_points(generate)[name],
        baseline=_baseline(profile.settings.baselines, wanted.baseline),
        device=inputs.devices[row.hardware].hardware.facts.get("model"),
        start=wanted.start,
    )


def _implementation(spec: GenerateSpec, wanted: str | None) -> str:
    """The requested one, or the first whose source can be replaced."""
    points = _points(spec)
    known = [name for name, each in spec.implementations.items() if each.call is None and name in points]
    if not known:
        raise ConfigError(f"kernel={spec.kernel}: no implementation for this device has a source to replace")
    if wanted is None:
        return known[0]
    if wanted not in known:
        raise ConfigError(f"implementation: got '{wanted}', expected one of {', '.join(known)}")
    return wanted


def _points(spec: GenerateSpec) -> dict[str, dict[str, TunableValue]]:
    """The default of each implementation, or its first valid point; none for one that has no valid point."""
    found = {}
    for each in space_of(spec).subspaces:
        if each.contains(each.default):
            found[each.implementation] = each.default
        elif each.has_point():
            found[each.implementation] = each.points()[0]
    return found


def _baseline(known: Sequence[str], wanted: str | None) -> str:
    """The baseline of the speed-ups."""
    if not known:
        raise ConfigError("profile.baselines: a reward needs at least one, for example [eager]")
    if wanted is None:
        return known[0]
    if wanted not in known:
        raise ConfigError(f"baseline: got '{wanted}', profile.baselines has {', '.join(known)}")
    return wanted


class Action(Record, frozen=True, kw_only=True):
    """The next candidate; absent parts stay as they were in the previous step."""

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
    """What the author of a kernel sees: plain texts without secrets of the harness."""

    kernel: str
    description: str
    category: str
    language: str
    signature: str
    contract: tuple[str, ...]
    """Rules for a source: shapes, attributes, includes, guarantees of the kernel."""
    includes: tuple[str, ...]
    """Files in quotes that it may include, in addition to system headers."""
    reference: str
    """Module of the PyTorch reference."""
    hardware: tuple[str, ...]
    """Facts of the target; peaks are declared, not measured."""
    axes: tuple[TunableAxis, ...]
    source: str
    """What the next action starts from: the first source, or the last candidate."""
    tunables: dict[str, TunableValue]
    outcome: Outcome | None = None
    """Of the last step; None after a reset."""
    feedback: tuple[str, ...] = ()
    """Messages of the stages, one line each."""


def start_of(task: EnvironmentTask) -> Observation:
    """The observation after a reset.

    Raises
    ------
    StoreError
        A source of the plan no longer exists.
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
    """For a kernel that returns gradients of its reference."""
    found = task.verify.gradient_of
    if found is None:
        return []
    of, given = ", ".join(found.inputs), ", ".join(found.upstream)
    return [f"the reference is differentiated: the outputs are the gradients of {of}, given {given}"]


def brief_of(task: EnvironmentTask) -> Brief:
    """The facts of kernel and device, as the search of a language model gets them."""
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
