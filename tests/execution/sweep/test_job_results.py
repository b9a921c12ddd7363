"""The objective of a job: a number of its best verified variants, or one line why there is none."""

import math

import msgspec
import pytest

from pipeline.execution.sweep.job_results import find_objective, job_result
from pipeline.records.layout import output_path
from pipeline.records.planning.planned_tasks import Missed, Objective, Reached, Unfinished
from pipeline.records.results.aggregated import Winner
from pipeline.records.results.profiled import Energy, Unmeasured
from pipeline.report.winner_selection import find_winners

TIME = Objective(name="time", description="", quantity="time", direction="minimize")
SPEEDUP = Objective(
    name="speedup", description="", quantity="speedup", direction="maximize", baseline="eager"
)
ENERGY = Objective(name="energy", description="", quantity="energy", direction="minimize")


def cell(collected, kernel: str, workload: str = "llama3_8b_decode", hardware: str = "cpu"):
    """The results of one cell."""
    names = (kernel, workload, hardware)
    return [
        each
        for each in collected.results
        if (each.task.kernel, each.task.workload, each.task.hardware) == names
    ]


def with_energy(results, joules):
    """The same results with these joules, in order, None for a device that tells none."""
    values = iter(joules)
    changed = []
    for result in results:
        if result.profiled is None:
            continue
        value = next(values)
        energy = None
        if value is not None:
            energy = Energy(joules=value, watts=1.0, seconds=1.0, calls=1, updates=9, source="rapl:package")
        unmeasured = () if energy else (Unmeasured(quantity="energy", reason="no counter"),)
        profiled = msgspec.structs.replace(result.profiled, energy=energy, unmeasured=unmeasured)
        record = msgspec.structs.replace(result.profile, result=profiled)
        changed.append(msgspec.structs.replace(result, profile=record))
    return changed


def test_time_is_the_winners_median(collected):
    """What the table of winners shows."""
    results = cell(collected, "softmax")
    (winner,) = find_winners(results)
    assert isinstance(winner, Winner)
    assert find_objective(TIME, results) == Reached(value=winner.seconds.value, unit="s")


def test_several_tasks_give_the_geometric_mean(collected):
    """Each cell counts once, whatever its size."""
    results = [*cell(collected, "softmax"), *cell(collected, "rms_norm")]
    values = [winner.seconds.value for winner in find_winners(results)]
    found = find_objective(TIME, results)
    assert isinstance(found, Reached)
    assert found.value == pytest.approx(math.sqrt(values[0] * values[1]))
    assert values[0] != values[1]


def test_speedup_is_the_largest_against_its_baseline(collected):
    """Of the variants that were measured, not of those that were refused."""
    results = cell(collected, "softmax")
    ratios = [each.profiled.comparisons[0].speedup.value for each in results if each.profiled]
    found = find_objective(SPEEDUP, results)
    assert found == Reached(value=max(ratios), unit="x")
    assert max(ratios) > 1


def test_a_baseline_that_was_not_measured(collected):
    """The reason names those that were."""
    other = msgspec.structs.replace(SPEEDUP, baseline="cublas")
    found = find_objective(other, cell(collected, "softmax"))
    assert isinstance(found, Missed)
    assert found.reason.startswith(
        "softmax x llama3_8b_decode x cpu: no baseline cublas was measured (known: eager"
    )


def test_energy_is_the_least(collected):
    """A variant whose energy is not known does not compete."""
    results = [each for each in cell(collected, "softmax") if each.profiled][:3]
    found = find_objective(ENERGY, with_energy(results, [0.5, None, 0.25]))
    assert found == Reached(value=0.25, unit="J")


@pytest.mark.parametrize(
    ("joules", "reason"),
    [
        ([None, None], "no energy: no counter"),
        ([0.0, 0.0], "the energy that was measured is 0"),
    ],
)
def test_no_energy(collected, joules, reason):
    """The device's reason is the job's."""
    results = [each for each in cell(collected, "softmax") if each.profiled][:2]
    found = find_objective(ENERGY, with_energy(results, joules))
    assert found == Missed(reason=f"softmax x llama3_8b_decode x cpu: {reason}")


def test_energy_was_not_asked_for(collected):
    """Then the setting is named."""
    found = find_objective(ENERGY, cell(collected, "softmax"))
    assert isinstance(found, Missed)
    assert found.reason.endswith("no energy: profile.energy_seconds is null")


def test_an_absent_device_leaves_the_job_without_a_number(collected):
    """A mean over the other cells would compare with nothing."""
    present = cell(collected, "softmax")
    absent = next(each for each in collected.results if each.task.hardware == "h200")
    found = find_objective(TIME, [*present, absent])
    assert isinstance(found, Missed)
    assert found.reason.endswith("x h200: device unavailable")


def test_a_job_that_did_not_come_to_its_end(root, spec, tmp_path):
    """The first stage whose output is missing is named."""
    (task, *_) = spec.tasks
    found = job_result(TIME, [task], spec, tmp_path)
    assert isinstance(found, Unfinished)
    assert found.reason.endswith(": generate did not finish")
    path = output_path(tmp_path, "generate", task.generate, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(output_path(root, "generate", task.generate, 0).read_bytes())
    log = tmp_path / "logs" / "compile" / task.compile / "round0.log"
    log.parent.mkdir(parents=True)
    log.touch()
    assert job_result(TIME, [task], spec, tmp_path).reason.endswith(f"compile did not finish ({log})")


def test_a_job_reads_its_own_tasks_alone(root, spec):
    """The objective is that of the job's tasks, whatever else the sweep has."""
    tasks = [task for task in spec.tasks if task.kernel == "rms_norm" and task.hardware == "cpu"]
    found = job_result(TIME, tasks, spec, root)
    assert isinstance(found, Reached)
    assert job_result(TIME, [], spec, root) == Missed(reason="no cell of its grid is possible")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"direction": "maximize"}, "direction: got maximize; time is something to minimize"),
        ({"baseline": "eager"}, "baseline: stands only with quantity: speedup"),
        (
            {"quantity": "speedup", "direction": "maximize"},
            "baseline: missing with quantity: speedup",
        ),
    ],
)
def test_an_objective_that_cannot_be(changes, text):
    """Its direction is that of the quantity; a speed-up is one over something."""
    plain = {"name": "time", "description": "", "quantity": "time", "direction": "minimize"}
    with pytest.raises(ValueError, match=text):
        Objective(**(plain | changes))
