"""What a bench measures: declared kernels, or a problem from elsewhere. In: a spec. Out: a BenchTask."""

from pathlib import Path

import msgspec

from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.measure.comparison.baselines import HostedBaseline, select_baselines
from pipeline.measure.hosting.measuring_messages import Candidate, Hosted, HostedModel, Reference
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import Record, digest
from pipeline.records.results.profiled import AbsentBaseline
from pipeline.records.results.timed import TimingSpec


class BenchTask(Record, frozen=True, kw_only=True):
    """Candidates of one problem on one device, and what they are compared with."""

    kind: DeviceKind
    device: str
    """Fingerprint of the device."""
    settings: Profile
    problem: Problem | None
    """None of a model, which brings its own."""
    reference: Hosted
    """What computes the right results, as it is."""
    baselines: tuple[HostedBaseline, ...]
    absent: tuple[AbsentBaseline, ...] = ()
    identity: str
    """Of problem and baselines, for their first times."""
    work: WorkPerCall | None
    """By the kernel's formulas; None if there are none: then the operators of the reference are counted."""


def kernel_task(spec: ProfileSpec, work: WorkPerCall, defaults: dict[str, Candidate]) -> BenchTask:
    """Of a declared kernel; `defaults` holds verified default variants by implementation."""
    found, absent = select_baselines(spec, defaults)
    return BenchTask(
        kind=spec.target.kind,
        device=spec.device,
        settings=spec.settings,
        problem=spec.problem,
        reference=Reference(function=spec.reference, gradient_of=spec.gradient_of),
        baselines=found,
        absent=absent,
        identity=kernel_identity(spec),
        work=work,
    )


def kernel_identity(spec: ProfileSpec) -> str:
    """What the first times of its baselines depend on besides the device and the settings."""
    reference = [spec.reference, spec.reference_digest, spec.gradient_of, spec.vendors_digest]
    return digest([spec.problem, reference])


def model_task(spec: TimingSpec, settings: Profile, sizes: dict[str, int], seed: int) -> BenchTask:
    """Of a problem from elsewhere on one choice of sizes."""
    model = HostedModel(problem=str(Path(spec.problem.path).absolute()), sizes=sizes, seed=seed)
    found: list[HostedBaseline] = []
    absent: list[AbsentBaseline] = []
    for name in settings.baselines:
        match name:
            case "eager":
                found.append(HostedBaseline(name=name, hosted=model))
            case "compile" | "compile_max_autotune":
                mode = "default" if name == "compile" else "max-autotune-no-cudagraphs"
                compiled = msgspec.structs.replace(model, compiled=mode)
                found.append(HostedBaseline(name=name, hosted=compiled))
            case _:
                reason = "declared kernels have it, problems from elsewhere do not"
                absent.append(AbsentBaseline(baseline=name, reason=reason))
    return BenchTask(
        kind=spec.target.kind,
        device=spec.device,
        settings=settings,
        problem=None,
        reference=model,
        baselines=tuple(found),
        absent=tuple(absent),
        identity=digest([spec.problem.digest, sizes]),
        work=None,
    )
