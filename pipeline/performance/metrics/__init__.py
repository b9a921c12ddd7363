"""The columns of the table `variants`: name, type, unit, what it says, and where it comes from.

One declaration feeds the schema, the values and the report's glossary, so that they cannot disagree.
Columns named `estimate_…` hold estimates; no other column does.
"""

from pipeline.performance.metrics.binary_facts import FACTS
from pipeline.performance.metrics.bound_estimates import ESTIMATES
from pipeline.performance.metrics.call_times import TIMING
from pipeline.performance.metrics.energy_and_memory import CONDITIONS
from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.performance.metrics.model_usage import AGENTS
from pipeline.performance.metrics.rates_and_ceilings import MEASUREMENT
from pipeline.performance.metrics.stage_outcomes import OUTCOME
from pipeline.performance.metrics.variant_identity import WHO, configuration
from pipeline.performance.metrics.verification_errors import VERIFICATION

COLUMNS = (*WHO, *OUTCOME, *FACTS, *VERIFICATION, *TIMING, *MEASUREMENT, *CONDITIONS, *ESTIMATES, *AGENTS)

__all__ = [
    "COLUMNS",
    "CONDITIONS",
    "FACTS",
    "MEASUREMENT",
    "TIMING",
    "Column",
    "ColumnType",
    "configuration",
]
