"""The checks that look at every call, in order; adding one is one module and one line.

The order decides the outcome where several would fail: what a user must fix first comes first.
"""

from pipeline.checks.completion import check_completion
from pipeline.checks.determinism import check_determinism
from pipeline.checks.guards import check_guards
from pipeline.checks.metadata import check_metadata
from pipeline.checks.mutation import check_mutation
from pipeline.checks.observation import Check
from pipeline.checks.tampering import check_tampering
from pipeline.checks.value import check_value
from pipeline.checks.work import check_work
from pipeline.checks.written import check_written

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
