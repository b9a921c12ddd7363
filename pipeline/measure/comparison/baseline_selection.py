"""Which baselines a task's candidates meet. In: the profile spec. Out: what to host, and what is absent."""

import msgspec

from pipeline.measure.hosting.measuring_messages import Candidate, Reference
from pipeline.records.configuration.stage_settings import IMPLEMENTATION
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import Record
from pipeline.records.results.profiled import AbsentBaseline


class Opponent(Record, frozen=True, kw_only=True):
    """One baseline by its name, and what its process hosts."""

    name: str
    hosted: Reference | Candidate


def opponents(
    spec: ProfileSpec, defaults: dict[str, Candidate]
) -> tuple[tuple[Opponent, ...], tuple[AbsentBaseline, ...]]:
    """Those that the settings ask for; `defaults` holds the verified default variant by implementation."""
    found: list[Opponent] = []
    absent: list[AbsentBaseline] = []
    for name in spec.settings.baselines:
        if name == "vendor":
            vendors = _vendors(spec)
            found += vendors
            if not vendors:
                reason = f"the kernel declares no vendor library's operator for {spec.target.kind} targets"
                absent.append(AbsentBaseline(baseline=name, reason=reason))
        elif name.startswith(IMPLEMENTATION):
            implementation = name.removeprefix(IMPLEMENTATION)
            if implementation in defaults:
                found.append(Opponent(name=implementation, hosted=defaults[implementation]))
            else:
                absent.append(AbsentBaseline(baseline=implementation, reason=_why(spec, implementation)))
        else:
            found.append(Opponent(name=name, hosted=_reference(spec, name)))
    return tuple(found), tuple(absent)


def _reference(spec: ProfileSpec, name: str) -> Reference:
    eager = Reference(function=spec.reference, gradient_of=spec.gradient_of)
    match name:
        case "compile":
            return msgspec.structs.replace(eager, compiled="default")
        case "compile_max_autotune":
            return msgspec.structs.replace(eager, compiled="max-autotune-no-cudagraphs")
    return eager


def _vendors(spec: ProfileSpec) -> list[Opponent]:
    return [
        Opponent(name=name, hosted=Reference(function=vendor.function, set_up=vendor.set_up))
        for name, vendor in spec.vendors.items()
    ]


def _why(spec: ProfileSpec, implementation: str) -> str:
    """Why an implementation's default variant cannot take part."""
    if implementation not in spec.implementations:
        known = ", ".join(sorted(spec.implementations))
        return f"no implementation of that name for {spec.target.kind} targets; there are {known}"
    return "its default variant was not among the variants of this task that verified"
