"""What each group of tasks adds to an experiment's tables, kept in the store: tasks in, parts and tables out.

A part is named after the content of all that it is made from, so it is either right or not found.
"""

from pipeline.report.tables.group_joining import join_tables
from pipeline.report.tables.task_groups import Part, groups, parts_of

__all__ = ["Part", "groups", "join_tables", "parts_of"]
