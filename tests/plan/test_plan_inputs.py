"""Which cells of the grid are planned."""

import pytest

from pipeline.plan.plan_inputs import GridCell, cells
from pipeline.records.configuration.experiment import Experiment, Selection

EXPERIMENT = Experiment(
    name="e",
    description="",
    select=(
        Selection(kernel=("a", "b"), workload=("w",), hardware=("cpu",), optimization=("full",)),
        Selection(kernel=("a",), workload=("w", "v"), hardware=("gpu",), optimization=("small",)),
    ),
)


def names(**chosen: tuple[str, ...]) -> list[str]:
    """Cells in short form."""
    return [
        "-".join(getattr(cell, axis) for axis in GridCell.__struct_fields__)
        for cell in cells(EXPERIMENT, chosen)
    ]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, ["a-w-cpu-full", "b-w-cpu-full", "a-w-gpu-small", "a-v-gpu-small"]),
        ({"kernel": ("b",)}, ["b-w-cpu-full"]),
        ({"hardware": ("gpu",)}, ["a-w-gpu-small", "a-v-gpu-small"]),
        ({"kernel": ("a",), "workload": ("w",)}, ["a-w-cpu-full", "a-w-gpu-small"]),
        ({"kernel": ("new",)}, ["new-w-cpu-full", "new-w-gpu-small", "new-v-gpu-small"]),
        ({"kernel": ("new", "b")}, ["new-w-cpu-full", "new-w-gpu-small", "new-v-gpu-small", "b-w-cpu-full"]),
        # No grid has b on the gpu: the one with more of the names takes it.
        ({"kernel": ("b",), "hardware": ("gpu",), "workload": ("v",)}, ["b-v-gpu-small"]),
        ({"kernel": ("b",), "workload": ("v",)}, ["b-v-cpu-full", "b-v-gpu-small"]),
        (
            {"kernel": ("a",), "workload": ("w",), "hardware": ("cpu",), "optimization": ("full", "small")},
            ["a-w-cpu-full", "a-w-cpu-small"],
        ),
    ],
)
def test_cells(chosen: dict[str, tuple[str, ...]], expected: list[str]) -> None:
    """Narrowed where the experiment has the name, replaced where it has not, never nothing."""
    assert names(**chosen) == expected


def test_lists_mean_what_single_runs_mean() -> None:
    """The cells of a list of names are those of one run for each combination."""
    lists = names(kernel=("a", "b", "new"), hardware=("gpu", "cpu"))
    single = [
        cell
        for kernel in ("a", "b", "new")
        for hardware in ("gpu", "cpu")
        for cell in names(kernel=(kernel,), hardware=(hardware,))
    ]
    assert sorted(lists) == sorted(set(single))


def test_a_cell_in_two_grids_is_one_task() -> None:
    """Grids may overlap."""
    doubled = Experiment(name="e", description="", select=(*EXPERIMENT.select, EXPERIMENT.select[0]))
    assert cells(doubled, {}) == cells(EXPERIMENT, {})


SIZED = Experiment(
    name="sized",
    description="",
    select=(
        Selection(
            kernel=("a",),
            workload=("w",),
            hardware=("cpu",),
            optimization=("full",),
            dimensions={"tokens": (4, 8), "hidden": (2, 3)},
        ),
    ),
)


def test_sizes_of_a_grid_are_a_product() -> None:
    """Each combination of sizes is a cell, and the workload's name says which one."""
    assert [cell.workload for cell in cells(SIZED, {})] == [
        "w[tokens=4 hidden=2]",
        "w[tokens=4 hidden=3]",
        "w[tokens=8 hidden=2]",
        "w[tokens=8 hidden=3]",
    ]


def test_a_size_that_the_user_gives_counts() -> None:
    """It takes the place of all sizes that the grid has for that dimension."""
    assert [cell.workload for cell in cells(SIZED, {}, {"tokens"})] == ["w[hidden=2]", "w[hidden=3]"]
    assert [cell.workload for cell in cells(SIZED, {}, {"tokens", "hidden"})] == ["w"]
