"""The checks that look at every call, in order; adding one is one module and one line.

The order decides the outcome where several would fail: what a user must fix first comes first.
"""

from pipeline.verify.checks.call_observation import Check
from pipeline.verify.checks.determinism import check_determinism
from pipeline.verify.checks.guards import check_guards
from pipeline.verify.checks.input_mutation import check_mutation
from pipeline.verify.checks.late_writes import check_completion
from pipeline.verify.checks.metadata import check_metadata
from pipeline.verify.checks.own_work import check_work
from pipeline.verify.checks.tampering import check_tampering
from pipeline.verify.checks.unwritten import check_written
from pipeline.verify.checks.value import check_value

CHECKS: dict[str, Check] = {
    "tampering": check_tampering,
    "metadata": check_metadata,
    "guards": check_guards,
    "mutation": check_mutation,
    "completion": check_completion,
    "written": check_written,
    "determinism": check_determinism,
    "value": check_value,
    "work": check_work,
}
