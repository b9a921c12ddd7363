"""The columns of the table `variants`: name, type, unit, what it says, and where it comes from.

One declaration feeds the schema, the values and the report's glossary, so that they cannot disagree.
Columns named `estimate_…` hold estimates; no other column does.
"""

from pipeline.analyze.columns.agents import AGENTS
from pipeline.analyze.columns.column import Column, ColumnType
from pipeline.analyze.columns.conditions import CONDITIONS
from pipeline.analyze.columns.estimates import ESTIMATES
from pipeline.analyze.columns.facts import FACTS
from pipeline.analyze.columns.measurement import MEASUREMENT
from pipeline.analyze.columns.outcomes import OUTCOME
from pipeline.analyze.columns.timing import TIMING
from pipeline.analyze.columns.verification import VERIFICATION
from pipeline.analyze.columns.who import WHO, configuration

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
