"""One task -> the specs of its stages: what each stage reads, the key of its parent, and nothing else.

What is only for readers (descriptions, reasons, origin, licence) is left out of the specs. The values that a
tunable may take end with generate: a variant carries its own, so one more value leaves every other variant's
compile, verify and profile as they are; the default goes on, because the analysis marks it.
"""

import msgspec

from pipeline.config.builds import Builds
from pipeline.config.resolve import limits_named
from pipeline.records.brief import Brief
from pipeline.records.hardware import Target
from pipeline.records.kernel import Implementation, Kernel, Tunable, Vendor
from pipeline.records.optimization import Optimization
from pipeline.records.problem import Problem
from pipeline.records.record import Record, digest
from pipeline.records.recorded import RecordedFile
from pipeline.records.search import Search, Start
from pipeline.records.settings import Profile, Verify
from pipeline.records.specs import Build, CompileSpec, GenerateSpec, ProfileSpec, VerifySpec, key_of


class Task(Record, frozen=True, kw_only=True):
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


class Specs(Record, frozen=True, kw_only=True):
    """The chain of one task."""

    generate: GenerateSpec
    compile: CompileSpec
    verify: VerifySpec
    profile: ProfileSpec

    def keys(self) -> dict[str, str]:
        """Stage -> key."""
        return {stage: key_of(self.generate.kernel, getattr(self, stage)) for stage in self.__struct_fields__}


def specs_of(task: Task, builds: Builds) -> Specs:
    """The specs of a task, chained by their keys."""
    generate = _generate(task, builds)
    if task.search.rounds > 1:
        # What the later stages find comes back to generate, so it depends on all that they depend on.
        later = _chain(task, builds, generate)
        feedback = digest([later.compile, later.verify, later.profile])
        generate = msgspec.structs.replace(generate, feedback=feedback)
    return _chain(task, builds, generate)


def _generate(task: Task, builds: Builds) -> GenerateSpec:
    named = limits_named(task.implementations)
    return GenerateSpec(
        kernel=task.kernel.name,
        implementations={name: _space_of(each) for name, each in task.implementations.items()},
        source_digests=task.source_digests,
        problem=task.problem,
        limits={name: value for name, value in task.target.limits.items() if name in named},
        optimization=msgspec.structs.replace(
            task.optimization, name="", description="", implementations="all"
        ),
        search=msgspec.structs.replace(task.search, name="", description=""),
        starts=task.starts,
        build=builds.generate(task.search),
        brief=task.brief,
        files=task.files,
    )


def _chain(task: Task, builds: Builds, generate: GenerateSpec) -> Specs:
    kernel = task.kernel
    callables = {name: _callable_of(each) for name, each in task.implementations.items()}
    used = {each.backend for each in task.implementations.values()}
    build = {
        stage: {name: _build(task, builds, stage, name) for name in sorted(used)}
        for stage in ("compile", "verify", "profile")
    }
    compiled = CompileSpec(
        parent=key_of(kernel.name, generate),
        problem=task.problem,
        implementations=callables,
        target=task.target,
        builds=build["compile"],
        recorded=task.recorded,
    )
    verified = VerifySpec(
        parent=key_of(kernel.name, compiled),
        problem=task.problem,
        implementations=callables,
        reference=kernel.reference,
        reference_digest=task.reference_digest,
        gradient_of=kernel.gradient_of,
        tolerance=msgspec.structs.replace(kernel.tolerance, reason=""),
        deterministic=kernel.deterministic,
        special_values=kernel.special_values,
        linear=kernel.linear,
        target=task.target,
        device_present=task.device_present,
        settings=msgspec.structs.replace(task.verify, description=""),
        prune=task.search.prune,
        builds=build["verify"],
        recorded=task.recorded,
    )
    profiled = ProfileSpec(
        parent=key_of(kernel.name, verified),
        problem=task.problem,
        implementations=callables,
        reference=kernel.reference,
        reference_digest=task.reference_digest,
        gradient_of=kernel.gradient_of,
        vendors=_vendors(task),
        vendors_digest=task.vendors_digest if _vendors(task) else None,
        cost=kernel.cost,
        target=task.target,
        device_present=task.device_present,
        device=task.device,
        settings=msgspec.structs.replace(task.profile, description=""),
        screening=task.search.screening(),
        builds=build["profile"],
        recorded=task.recorded,
    )
    return Specs(generate=generate, compile=compiled, verify=verified, profile=profiled)


def _build(task: Task, builds: Builds, stage: str, name: str) -> Build:
    return builds.replayed(stage) if task.recorded else builds.of_backend(stage, name, task.target)


def _vendors(task: Task) -> dict[str, Vendor]:
    """Those of the target's kind, where the measurement asks for them."""
    if "vendor" not in task.profile.baselines:
        return {}
    return {
        name: msgspec.structs.replace(vendor, description="")
        for name, vendor in task.kernel.vendors.items()
        if task.target.kind in vendor.kinds
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
