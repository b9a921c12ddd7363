"""Specs of the stages of a task: what each stage reads, the key of its parent, and nothing else.

Texts for readers (descriptions, reasons, origin, licence) are left out of the specs. The values that a
tunable may take end with generate: a variant carries its own, so that adding a value leaves every other
variant's compile, verify and profile unchanged; the default stays, because the analysis marks it. `mutate`
has one spec per implementation of a kernel, over all tasks of the plan that hold it; survivors are explained
in `survivors.yaml` next to the sources or above them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from pipeline.backends.registry import backend
from pipeline.plan.config.options import ExperimentSettings
from pipeline.plan.identity.stage_builds import StageBuilds
from pipeline.plan.memoize import Memoized
from pipeline.plan.spec_files import SpecFile, spec_file
from pipeline.plan.tasks.resolution import limits_named
from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.kernel import Implementation, Kernel, Tolerance, Tunable, Vendor
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.pruning import Bounded
from pipeline.records.configuration.search_settings import Search, Start
from pipeline.records.configuration.stage_settings import Profile, Verify
from pipeline.records.errors import ConfigError
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import (
    Build,
    CompileSpec,
    GenerateSpec,
    MutateSpec,
    MutateTask,
    ProfileSpec,
    VerifySpec,
)
from pipeline.records.record import Record, digest
from pipeline.records.search.brief import Brief
from pipeline.records.search.recorded_space import RecordedFile
from pipeline.search.strategy_registry import fidelities, search_inputs, shapes

R = TypeVar("R", bound=Record)


class TaskInputs(Record, frozen=True, kw_only=True):
    """Everything that a task's specs are made of."""

    kernel: Kernel
    implementations: dict[str, Implementation]
    problem: Problem
    target: Target
    device_present: bool
    device: str
    optimization: Optimization
    search: Search
    verify: Verify
    profile: Profile
    source_digests: dict[str, str]
    reference_digest: str
    vendors_digest: str | None = None
    brief: Brief | None = None
    files: dict[str, str] = {}
    starts: tuple[Start, ...] = ()
    recorded: RecordedFile | None = None
    bounded: Bounded | None = None


class Specs(Record, frozen=True, kw_only=True):
    """The chain of one task."""

    generate: GenerateSpec
    compile: CompileSpec
    verify: VerifySpec
    profile: ProfileSpec


class StageChain(Record, frozen=True, kw_only=True):
    """The specs of one task, and their files."""

    specs: Specs
    files: dict[str, SpecFile]
    """By stage."""


class SpecMaker:
    """Makes the specs of tasks; each is encoded once, and what tasks share is made once."""

    def __init__(self, builds: StageBuilds) -> None:
        self._builds = builds
        self._named = Memoized(limits_named)
        self._spaces = Memoized(lambda several: {name: _space_of(each) for name, each in several.items()})
        self._callables = Memoized(
            lambda several: {name: _callable_of(each) for name, each in several.items()}
        )
        self._build = Memoized(self._builds_of)
        self._vendors = Memoized(_vendors)
        self._unnamed = Memoized(_unnamed)
        self._undescribed = Memoized(_undescribed)
        self._tolerance = Memoized(_tolerance)

    def of(self, task: TaskInputs) -> StageChain:
        """The specs of a task, chained by their keys."""
        generate = self._generate(task)
        if task.search.rounds > 1:
            # What the later stages find comes back to generate, so it depends on all that they depend on.
            later = self._chain(task, generate).specs
            feedback = digest([later.compile, later.verify, later.profile])
            generate = msgspec.structs.replace(generate, feedback=feedback)
        return self._chain(task, generate)

    def _generate(self, task: TaskInputs) -> GenerateSpec:
        named = self._named(task.implementations)
        return GenerateSpec(
            kernel=task.kernel.name,
            implementations=self._spaces(task.implementations),
            source_digests=task.source_digests,
            problem=task.problem,
            limits={name: value for name, value in task.target.limits.items() if name in named},
            optimization=self._unnamed(task.optimization),
            search=self._unnamed(task.search),
            starts=task.starts,
            build=self._builds.generate(task.search),
            brief=task.brief,
            files=task.files,
            reference=task.kernel.reference if _compiles_reference(task) else None,
            reference_digest=task.reference_digest if _compiles_reference(task) else None,
            target=task.target if _compiles_reference(task) else None,
        )

    def _chain(self, task: TaskInputs, generate: GenerateSpec) -> StageChain:
        files = {"generate": spec_file(task.kernel.name, generate)}
        compiled = self._compile(task, files["generate"].key)
        files["compile"] = spec_file(task.kernel.name, compiled)
        verified = self._verify(task, files["compile"].key)
        files["verify"] = spec_file(task.kernel.name, verified)
        profiled = self._profile(task, files["verify"].key)
        files["profile"] = spec_file(task.kernel.name, profiled)
        specs = Specs(generate=generate, compile=compiled, verify=verified, profile=profiled)
        return StageChain(specs=specs, files=files)

    def _compile(self, task: TaskInputs, parent: str) -> CompileSpec:
        return CompileSpec(
            parent=parent,
            problem=task.problem,
            implementations=self._callables(task.implementations),
            target=task.target,
            builds=self._build("compile", task.implementations, task.target, task.recorded),
            recorded=task.recorded,
        )

    def _verify(self, task: TaskInputs, parent: str) -> VerifySpec:
        kernel = task.kernel
        return VerifySpec(
            parent=parent,
            problem=task.problem,
            implementations=self._callables(task.implementations),
            reference=kernel.reference,
            reference_digest=task.reference_digest,
            gradient_of=kernel.gradient_of,
            tolerance=self._tolerance(kernel.tolerance),
            deterministic=kernel.deterministic,
            special_values=kernel.special_values,
            linear=kernel.linear,
            target=task.target,
            device_present=task.device_present,
            settings=self._undescribed(task.verify),
            prune=task.search.prune,
            pruning=None if task.search.prune is None else self._builds.pruning(),
            bounded=task.bounded,
            builds=self._build("verify", task.implementations, task.target, task.recorded),
            recorded=task.recorded,
        )

    def _profile(self, task: TaskInputs, parent: str) -> ProfileSpec:
        kernel = task.kernel
        vendors = self._vendors(kernel, task.profile, task.target)
        return ProfileSpec(
            parent=parent,
            problem=task.problem,
            implementations=self._callables(task.implementations),
            reference=kernel.reference,
            reference_digest=task.reference_digest,
            gradient_of=kernel.gradient_of,
            vendors=vendors,
            vendors_digest=task.vendors_digest if vendors else None,
            cost=kernel.cost,
            target=task.target,
            device_present=task.device_present,
            device=task.device,
            settings=self._undescribed(task.profile),
            screening=tuple(each.share for each in fidelities(task.search)),
            shapes=shapes(task.search, task.problem.dimensions),
            builds=self._build("profile", task.implementations, task.target, task.recorded),
            recorded=task.recorded,
        )

    def _builds_of(
        self,
        stage: str,
        implementations: Mapping[str, Implementation],
        target: Target,
        recorded: RecordedFile | None,
    ) -> dict[str, Build]:
        used = sorted({each.backend for each in implementations.values()})
        if recorded is not None:
            return dict.fromkeys(used, self._builds.replayed(stage))
        return {name: self._builds.of_backend(stage, name, target) for name in used}


def _compiles_reference(task: TaskInputs) -> bool:
    return search_inputs(task.search).reference and task.kernel.gradient_of is None


def _unnamed(options: R) -> R:
    """An optimization or a search without what is for readers; its implementations are chosen already."""
    plain = msgspec.structs.replace(options, name="", description="")
    return msgspec.structs.replace(plain, implementations="all") if isinstance(plain, Optimization) else plain


def _undescribed(settings: R) -> R:
    return msgspec.structs.replace(settings, description="")


def _tolerance(tolerance: Tolerance) -> Tolerance:
    return msgspec.structs.replace(tolerance, reason="")


def _vendors(kernel: Kernel, profile: Profile, target: Target) -> dict[str, Vendor]:
    """Those of the target's kind, where the measurement asks for them."""
    if "vendor" not in profile.baselines:
        return {}
    return {
        name: msgspec.structs.replace(vendor, description="")
        for name, vendor in kernel.vendors.items()
        if target.kind in vendor.kinds
    }


def _space_of(implementation: Implementation) -> Implementation:
    """What generate reads: the space."""
    tunables = {
        name: msgspec.structs.replace(tunable, description="")
        for name, tunable in implementation.tunables.items()
    }
    return msgspec.structs.replace(implementation, tunables=tunables, origin="", licence="")


def _callable_of(implementation: Implementation) -> Implementation:
    """What the later stages read: how to build and call it, and on which shapes it may be called."""
    tunables = {
        name: Tunable(values=(tunable.default,), default=tunable.default)
        for name, tunable in implementation.tunables.items()
    }
    constraints = tuple(msgspec.structs.replace(each, reason="") for each in implementation.constraints)
    return msgspec.structs.replace(
        implementation, tunables=tunables, constraints=constraints, origin="", licence=""
    )


SURVIVORS = "survivors.yaml"


def mutate_specs(
    tasks: Iterable[Specs], settings: ExperimentSettings, presets: Mapping[str, Verify], builds: StageBuilds
) -> tuple[MutateSpec, ...]:
    """One spec per kernel and implementation; tasks that differ only in their target count once."""
    groups: dict[tuple[str, str], dict[str, Specs]] = {}
    for each in tasks:
        if each.verify.recorded is not None:  # nothing runs, so nothing can be killed
            continue
        for name, implementation in each.verify.implementations.items():
            # The sources of an installed package are not ours to change.
            language = backend(implementation.backend).language
            if implementation.call is not None or language.mutation is None:
                continue
            group = groups.setdefault((each.generate.kernel, name), {})
            group.setdefault(digest([each.verify.problem, _where(each)]), each)
    # The experiment's own may have been overridden.
    judging = (settings.verify if name == settings.verify.name else each for name, each in presets.items())
    judges = tuple(msgspec.structs.replace(each, description="") for each in judging)
    return tuple(
        MutateSpec(
            kernel=kernel,
            implementation=name,
            source_digest=next(iter(group.values())).generate.source_digests[name],
            tasks=tuple(_task(each, name, builds) for each in group.values()),
            presets=judges,
            settings=msgspec.structs.replace(settings.mutation, name="", description="", report=False),
        )
        for (kernel, name), group in groups.items()
    )


def explanations(folder: Path, root: Path) -> dict[str, str]:
    """Mutant -> why it survives: from `survivors.yaml` in a source's folder and in those above it.

    Raises
    ------
    ConfigError
        A file is not a mapping of names to texts.
    """
    found: dict[str, str] = {}
    for each in (folder, *folder.parents):
        found = _read_survivors(root / each / SURVIVORS, (each / SURVIVORS).as_posix()) | found
    return found


def _read_survivors(path: Path, where: str) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        found: Any = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not YAML: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ConfigError(f"{where}: expected `mutant: why it survives` lines")
    return {str(name): " ".join(text.split()) for name, text in found.items()}


def _where(specs: Specs) -> str:
    """Targets that are absent are interpreted, all alike."""
    spec = specs.verify
    return spec.target.architecture if spec.device_present else "absent"


def _task(specs: Specs, name: str, builds: StageBuilds) -> MutateTask:
    spec = specs.verify
    implementation = spec.implementations[name]
    build = builds.of_backend("mutate", implementation.backend, spec.target)
    verify = msgspec.structs.replace(
        spec,
        parent="",
        pruning=None,
        implementations={name: implementation},
        builds={implementation.backend: build},
    )
    space = specs.generate.implementations[name]
    return MutateTask(space=space, limits=specs.generate.limits, verify=verify)
