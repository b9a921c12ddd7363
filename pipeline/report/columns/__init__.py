"""The columns of the table `variants`: name, type, unit, what it says, and where it comes from.

One declaration feeds the schema, the values and the report's glossary, so that they cannot disagree.
Columns named `estimate_…` hold estimates; no other column does.
"""

from pipeline.report.columns.agents import AGENTS
from pipeline.report.columns.column import Column, ColumnType
from pipeline.report.columns.conditions import CONDITIONS
from pipeline.report.columns.estimates import ESTIMATES
from pipeline.report.columns.facts import FACTS
from pipeline.report.columns.measurement import MEASUREMENT
from pipeline.report.columns.outcomes import OUTCOME
from pipeline.report.columns.timing import TIMING
from pipeline.report.columns.verification import VERIFICATION
from pipeline.report.columns.who import WHO, configuration

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
