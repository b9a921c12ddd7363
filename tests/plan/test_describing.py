"""What the report says of a plan: the experiment's own words only of what the experiment selects."""

import pytest

from pipeline.records.planning.specs import AggregateSpec
from tests.plan.project import Project


def said(project: Project, *jobs: tuple[str, ...]) -> str:
    """The description that aggregate is given."""
    spec = project.spec("aggregate", project.make_sweep(*jobs).plan.aggregate)
    assert isinstance(spec, AggregateSpec)
    return spec.description


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), "Both kinds."),
        (("search=random", "profile=quick"), "Both kinds."),
        (("hardware=h200",), "Both kinds. Here only workload=small hardware=h200."),
        (("workload=small",), "Both kinds. Here only workload=small."),
        (
            ("optimization=scalar", "hardware=cpu"),
            "Chosen in place of what the experiment default selects: kernel=scale workload=large,small"
            " hardware=cpu optimization=scalar.",
        ),
    ],
)
def test_what_was_chosen_is_said(project: Project, lines: tuple[str, ...], expected: str) -> None:
    """All of it, a part of it, or something else."""
    assert said(project, lines) == expected


def test_a_part_with_all_names(project: Project) -> None:
    """Where the names on the axes say nothing, the count does."""
    jobs = (("workload=large", "hardware=cpu"), ("workload=small", "hardware=h100,h200"))
    assert said(project, *jobs) == "Both kinds. Here only 3 of its 4 cells."


def test_jobs_that_are_the_experiment_together(project: Project) -> None:
    """A sweep over all of its targets is the experiment."""
    assert said(project, ("hardware=cpu",), ("hardware=h100,h200",)) == "Both kinds."
