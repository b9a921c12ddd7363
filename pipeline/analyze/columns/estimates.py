"""Estimates, each so named: no column holds both an estimate and a measurement."""

from pipeline.analyze.columns.column import Column
from pipeline.analyze.roofline import estimate_bound, estimate_roofline_seconds

ESTIMATES = (
    Column(
        name="estimate_roofline_seconds",
        type="double",
        unit="s",
        meaning="Estimate: least time of a call that the declared peaks of the target allow",
        value=lambda result: estimate_roofline_seconds(result.task),
    ),
    Column(
        name="estimate_bound",
        type="string",
        meaning="Estimate: which declared peak sets it, memory or compute",
        value=lambda result: estimate_bound(result.task),
    ),
)
