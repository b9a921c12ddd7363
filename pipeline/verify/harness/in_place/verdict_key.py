"""The key of a verdict. In: a spec, a compiled variant, shapes. Out: the digest of all that decides it."""

from collections.abc import Sequence

import msgspec

from pipeline.backends.cuda.geometry import limits_read
from pipeline.records.compiled import Compiled, CompileRecord
from pipeline.records.record import digest
from pipeline.records.specs import Build, VerifySpec
from pipeline.records.variant import Variant
from pipeline.verify.harness.in_place.preparation import where_run
from pipeline.verify.harness.in_place.shapes import Shape
from pipeline.verify.harness.interpreters import INTERPRETERS


def verdict_digest(spec: VerifySpec, compiled: CompileRecord, shapes: Sequence[Shape]) -> str:
    """What the verdict depends on, and nothing else.

    The target is in it through the artifact; the interpreter runs the source, so that targets share its
    verdict.
    """
    variant, where = compiled.variant, where_run(spec)
    result = compiled.result
    artifact = result.artifact_digest if isinstance(result, Compiled) and where != "interpreter" else None
    return digest(
        {
            "variant": variant.id,
            "entry": spec.implementations[variant.implementation].called,
            "artifact": artifact,
            "problem": spec.problem,
            "shapes": shapes,
            "reference": [spec.reference, spec.reference_digest, spec.gradient_of],
            "tolerance": spec.tolerance,
            "claims": [spec.deterministic, spec.special_values, spec.linear],
            "settings": msgspec.structs.replace(spec.settings, name="", description=""),
            "where": where,
            "limits": _limits(spec, variant),
            "build": _build(spec, variant.backend),
        }
    )


def _limits(spec: VerifySpec, variant: Variant) -> dict[str, int]:
    """The target's, as far as the geometry of a launch reads them: stand-ins start those threads, too."""
    launch = spec.implementations[variant.implementation].launch
    return {} if launch is None else limits_read(launch, spec.target.limits)


def _build(spec: VerifySpec, name: str) -> Build:
    """What the verdict depends on beside its inputs; targets share it where the interpreter runs."""
    build = spec.builds[name]
    if where_run(spec) != "interpreter" or name not in INTERPRETERS:
        return build
    kept = {tool: build.toolchain[tool] for tool in INTERPRETERS[name].toolchain if tool in build.toolchain}
    return Build(code=build.code, toolchain=kept)
