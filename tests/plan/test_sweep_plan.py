"""The plan of a sweep: every distinct task once, and which of them each job has."""

import itertools

import pytest

from pipeline.records.errors import ConfigError
from pipeline.records.planning.planned_tasks import Plan
from tests.plan.project import Project

SMALL = ("workload=small", "hardware=cpu")


def sweep(project: Project, *jobs: tuple[str, ...]) -> Plan:
    """The plan of these jobs."""
    return project.make_sweep(*jobs).plan


def test_jobs_over_choices_are_what_one_run_over_lists_is(project: Project) -> None:
    """The same tasks in the same order, so that after one the other has nothing to do."""
    workloads, targets = ("small", "large"), ("cpu", "h200")
    jobs = [
        (f"workload={workload}", f"hardware={target}")
        for workload, target in itertools.product(workloads, targets)
    ]
    plan = sweep(project, *jobs)
    listed = project.plan("workload=small,large", "hardware=cpu,h200")
    assert plan.tasks == listed.tasks
    assert plan.aggregate == listed.aggregate
    assert [job.overrides for job in plan.jobs] == jobs
    assert [job.tasks for job in plan.jobs] == [(task.row.task,) for task in plan.tasks]


def test_a_task_of_several_jobs_is_planned_once(project: Project) -> None:
    """Jobs overlap: each names the task, the plan has it once."""
    plan = sweep(project, ("hardware=cpu",), SMALL, ("workload=large", "hardware=cpu"))
    assert [len(job.tasks) for job in plan.jobs] == [2, 1, 1]
    assert len(plan.tasks) == 2
    assert plan.jobs[0].tasks == plan.jobs[1].tasks + plan.jobs[2].tasks


def test_one_job_is_a_run(project: Project) -> None:
    """A sweep of one job has the plan of that run."""
    assert sweep(project, SMALL) == project.plan(*SMALL)


def test_tasks_that_differ_in_a_value_say_so(project: Project) -> None:
    """One workload's name would stand for several problems: the value stands behind it."""
    jobs = [(*SMALL, f"workload.dimensions.tokens={tokens}") for tokens in (8, 16)]
    plan = sweep(project, *jobs)
    assert [task.row.workload for task in plan.tasks] == ["small[tokens=8]", "small[tokens=16]"]
    assert [task.row.dimensions["rows"] for task in plan.tasks] == [8, 16]
    assert [task.row.varied for task in plan.tasks] == [
        ("workload.dimensions.tokens=8",),
        ("workload.dimensions.tokens=16",),
    ]
    alone = project.plan(*jobs[0]).tasks[0].row
    assert (alone.workload, alone.task) == ("small", plan.tasks[0].row.task)
    assert [getattr(alone, stage) for stage in ("generate", "profile")] == [
        getattr(plan.tasks[0].row, stage) for stage in ("generate", "profile")
    ]


def test_what_all_jobs_have_is_no_name(project: Project) -> None:
    """Only what they differ in; a job without the override keeps the plain name."""
    common = (*SMALL, "workload.dimensions.hidden=32")
    plan = sweep(project, common, (*common, "profile.seconds_per_variant=1"), (*common, "profile=server"))
    names = [task.row.workload for task in plan.tasks]
    assert names == ["small", "small[seconds_per_variant=1]", "small[profile=server]"]


def test_equal_ends_of_different_keys(project: Project) -> None:
    """Where the short form would not tell, the whole override does."""
    plan = sweep(project, SMALL, (*SMALL, "verify.time_limit=9.0"), (*SMALL, "profile.time_limit=9.0"))
    names = [task.row.workload for task in plan.tasks]
    assert names == ["small", "small[verify.time_limit=9.0]", "small[profile.time_limit=9.0]"]


def test_optimizations_and_searches_compete_under_one_name(project: Project) -> None:
    """They are several ways to one aim, and the winner is the best of all."""
    plan = sweep(project, SMALL, (*SMALL, "optimization=scalar"), (*SMALL, "search=random"))
    assert {task.row.workload for task in plan.tasks} == {"small"}
    assert len(plan.tasks) == 3


def test_a_job_without_a_possible_cell(project: Project) -> None:
    """It has no task and says why; the others are planned."""
    impossible = ("optimization=scalar", "hardware=cpu", "optimization.implementations=[triton]")
    plan = sweep(project, SMALL, (*impossible, "workload=small"))
    assert [len(job.tasks) for job in plan.jobs] == [1, 0]
    assert plan.jobs[1].pruned == (
        "scale x small x cpu x scalar: no implementation runs on cpu (there is triton)",
    )
    with pytest.raises(ConfigError, match="nothing to do: no cell of the grid is possible"):
        sweep(project, impossible, impossible)


def test_a_job_has_its_objective(project: Project) -> None:
    """Which changes nothing of the tasks."""
    plan = sweep(project, SMALL, (*SMALL, "objective=speedup", "objective.baseline=compile"))
    assert [job.objective.quantity for job in plan.jobs] == ["time", "speedup"]
    assert plan.jobs[1].objective.baseline == "compile"
    assert plan.jobs[0].tasks == plan.jobs[1].tasks


def test_experiments_are_planned_together(project: Project) -> None:
    """The sweep bears both names."""
    text = (project.folder / "conf/experiment/default.yaml").read_text()
    project.write("conf/experiment/other.yaml", text.replace("name: default", "name: other"))
    plan = sweep(project, ("experiment=default", *SMALL), ("experiment=other", *SMALL))
    assert plan.experiment == "default+other"
    assert len(plan.tasks) == 1


def test_jobs_are_logged_together(project: Project) -> None:
    """Two ways of tracking cannot be had in one sweep."""
    text = "tracking: the jobs of a sweep are logged together, expected one, got mlflow, disabled"
    with pytest.raises(ConfigError, match=text):
        sweep(project, SMALL, (*SMALL, "tracking=disabled"))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("kernel=scal", r"kernel=scal: unknown kernel 'scal'; did you mean 'scale'\? \(known: scale\)"),
        ("workload.dimensions.tokens=0", r"dimensions.tokens: expected at least 1, got 0"),
        ("search=grid,random", r"search=grid,random: expected one search \(known: .*grid, .*random, .*\)"),
        ("hydra.sweep.dir=x", r"hydra.sweep.dir=x: a setting of Hydra"),
    ],
)
def test_a_wrong_override_of_one_job(project: Project, line: str, text: str) -> None:
    """Stops the whole sweep before anything runs."""
    with pytest.raises(ConfigError, match=text):
        sweep(project, SMALL, (*SMALL, line))


@pytest.mark.slow
def test_every_way_of_composing_gives_one_plan(project: Project) -> None:
    """Jobs that are composed together have the tasks that each has alone."""
    jobs = [
        (*SMALL, "kernel.attributes.epilogue=relu"),
        (*SMALL, "kernel.attributes.epilogue=relu", "search.variants_per_round=2"),
        (*SMALL, "workload.dimensions.tokens=4"),
        (*SMALL, "hardware.name=cpu", "verify.seeds=3"),
        ("hardware=h200", "hardware.peaks.dram_bandwidth.value=1e12"),
        ("optimization=full", "optimization.free=[UNROLL]", "hardware=cpu"),
        ("experiment.select=[{kernel: [scale], workload: [large], hardware: [cpu], optimization: [full]}]",),
    ]
    plan = sweep(project, *jobs)
    for job, lines in zip(plan.jobs, jobs, strict=True):
        assert job.tasks == tuple(task.row.task for task in project.plan(*lines).tasks), lines
