"""Memory beyond the tensors: what was measured of a call in, `workspace` out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.records.results.diagnosed import Finding, FindingCode

MUCH = 0.1
"""Share of the inputs' and outputs' bytes above which it is told."""


def extra_memory(case: Case) -> Iterator[Finding]:
    """A call that allocates on the device writes there and reads back what the formula does not count."""
    memory = case.profiled.memory if case.profiled else None
    taken = memory.steady.device_bytes if memory else None
    if memory is None or taken is None or taken <= MUCH * memory.formula_bytes:
        return
    yield Finding(
        code=FindingCode.WORKSPACE,
        basis="measured",
        sentence=(
            f"Takes {taken / 1e6:,.1f} MB on the device beside its tensors of "
            f"{memory.formula_bytes / 1e6:,.1f} MB: traffic that the kernel's formula does not know."
        ),
        evidence=evidence(device_bytes=(taken, "B"), formula_bytes=(memory.formula_bytes, "B")),
    )
