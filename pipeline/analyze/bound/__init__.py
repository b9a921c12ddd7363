"""The least time of a variant's call, term by term: an estimate, labelled so everywhere."""

from pipeline.analyze.bound.least import Bound, Term, Work
from pipeline.analyze.bound.of_result import (
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    geometry_of,
)

__all__ = [
    "Bound",
    "Term",
    "Work",
    "ceiling_bound",
    "declared_bandwidth_share",
    "declared_bound",
    "geometry_of",
]
