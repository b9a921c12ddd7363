"""Identity of a measurement. In: a spec, a compiled variant, the defaults. Out: the digest of all these."""

import msgspec

from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import digest
from pipeline.records.results.compiled import Compiled, CompileRecord


def entry_digest(spec: ProfileSpec, compiled: CompileRecord, defaults: dict[str, CompileRecord]) -> str:
    """Identity of one measurement: what its figures depend on, and nothing else.

    `defaults` are the default variants that it is compared with, by implementation.
    """
    variant = compiled.variant
    artifact = compiled.result.artifact_digest if isinstance(compiled.result, Compiled) else None
    return digest(
        {
            "variant": variant.id,
            "entry": spec.implementations[variant.implementation].called,
            "artifact": artifact,
            "problem": spec.problem,
            "reference": [spec.reference, spec.reference_digest, spec.gradient_of],
            "vendors": [spec.vendors, spec.vendors_digest],
            "defaults": {name: record.entry for name, record in defaults.items()},
            "cost": spec.cost,
            "settings": msgspec.structs.replace(spec.settings, name="", description=""),
            "device": [spec.target.kind, spec.device_present, spec.device],
            "build": spec.builds[variant.backend],
        }
    )
