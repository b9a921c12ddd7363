"""The task of an environment. In: names of a kernel, a workload and a device. Out: specs, space, start."""

import threading
from collections.abc import Sequence
from pathlib import Path

from pipeline.plan.local_machine import read_machine
from pipeline.plan.plan_cache import current_plan
from pipeline.plan.plan_inputs import gather_inputs
from pipeline.records.configuration.kernel import Implementation, Kernel, TunableValue
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import GenerateSpec, ProfileSpec, TaskRow, VerifySpec
from pipeline.records.record import Record, read_record
from pipeline.search.agents.kernel_contract import LANGUAGE
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
    """Of the implementation whose source is replaced."""
    default: dict[str, TunableValue]
    baseline: str
    device: str | None
    """Model name, where the machine tells it."""
    start: str | None = None
    """Text to start from; None: the declared source."""

    @property
    def implementation(self) -> Implementation:
        """With the space of its tunables."""
        return self.generate.implementations[self.name]

    @property
    def space(self) -> Subspace:
        """What its tunables may be here."""
        return next(each for each in space_of(self.generate).subspaces if each.implementation == self.name)

    @property
    def problem(self) -> Problem:
        """Kernel and workload."""
        return self.generate.problem


class EnvironmentRequest(Record, frozen=True, kw_only=True):
    """What the user asked for."""

    lines: tuple[str, ...]
    """Overrides, as for `kernelmill run`."""
    implementation: str | None
    baseline: str | None
    start: str | None


def task_of(wanted: EnvironmentRequest, store: Path) -> EnvironmentTask:
    """Plan it, and see that it can be measured here.

    Raises
    ------
    ConfigError
        A name is unknown, the lines mean several tasks, or no reward could be measured here.
    """
    lines = (*SETTINGS, *wanted.lines)
    with _PLANNING:
        plan = current_plan(lines, root=Path.cwd(), store=store)
        (material,) = gather_inputs((lines,), Path.cwd(), read_machine())
    if len(plan.tasks) != 1:
        raise ConfigError(f"an environment is one task, {' '.join(wanted.lines)} gives {len(plan.tasks)}")
    row = plan.tasks[0].row
    if not row.device_present:
        raise ConfigError(f"hardware={row.hardware}: no such device here, and a reward is measured on it")
    generate = read_record(spec_path(store, "generate", row.generate), GenerateSpec)
    profile = read_record(spec_path(store, "profile", row.profile), ProfileSpec)
    name = _implementation(generate, wanted.implementation)
    return EnvironmentTask(
        kernel=material.kernels[row.kernel],
        row=row,
        generate=generate,
        verify=read_record(spec_path(store, "verify", row.verify), VerifySpec),
        name=name,
        default=_points(generate)[name],
        baseline=_baseline(profile.settings.baselines, wanted.baseline),
        device=material.devices[row.hardware].hardware.facts.get("model"),
        start=wanted.start,
    )


def _implementation(spec: GenerateSpec, wanted: str | None) -> str:
    """The one that was asked for, or the first whose source can be replaced."""
    points = _points(spec)
    known = [
        name
        for name, each in spec.implementations.items()
        if each.call is None and each.backend in LANGUAGE and name in points
    ]
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
    """What speed-ups are measured against."""
    if not known:
        raise ConfigError("profile.baselines: a reward needs one at least, for example [eager]")
    if wanted is None:
        return known[0]
    if wanted not in known:
        raise ConfigError(f"baseline: got '{wanted}', profile.baselines has {', '.join(known)}")
    return wanted
