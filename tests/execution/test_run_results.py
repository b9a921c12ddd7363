"""What a run prints at its end: tables of searches and of static facts."""

import csv
from pathlib import Path

from pipeline.execution.run_results import RunResult, job_labels, result_text
from pipeline.records.planning.planned_tasks import Objective, Plan, PlannedJob, PlannedTask
from pipeline.records.planning.specs import TaskRow

TASK = {"kernel": "softmax", "workload": "w", "hardware": "h100"}


def ended(folder: Path, name: str, *rows: dict[str, str]) -> str:
    """The text of a run that left one table."""
    with (folder / name).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return result_text(
        RunResult(
            experiment="e", variants=1, passed=1, failures=(), failed_jobs=(), summary=None, report=None,
            tables=str(folder), tracking=None,
        )
    )  # fmt: skip


def test_searches_that_differ_in_their_optimization(tmp_path: Path) -> None:
    """Its column tells their rows apart."""
    counts = dict.fromkeys(("proposed", "failed", "measured"), "1") | {"search": "grid", "best_seconds": ""}
    rows = [
        TASK | counts | {"task": name, "optimization": name, "round": number}
        for name in ("essential", "full")
        for number in ("0", "1")
    ]
    text = ended(tmp_path, "rounds.csv", *rows)
    assert [line.split()[3] for line in text.splitlines() if "softmax" in line] == [
        *("essential", "essential"),
        *("full", "full"),
    ]


def test_jobs_of_one_name() -> None:
    """What they were asked for with distinguishes those that are not one; what all have is left out."""
    time = Objective(name="time", description="", quantity="time", direction="minimize")
    tasks, jobs = [], []
    for lanes in (1, 8):
        row = TaskRow(
            task=f"t{lanes}", kernel="softmax", workload="w", hardware="cpu", kind="cpu", device_present=True,
            optimization="full", search="grid", rounds=1, dtype="float32", dimensions={"rows": 1}, flops=1.0,
            bytes=1.0, unit="vector", peaks={},
            generate=f"g-{lanes}", compile="c-1", verify="v-1", profile="p-1",
        )  # fmt: skip
        tasks.append(PlannedTask(row=row, variants={"cpp": 1}, proposed=1))
        lines = ("kernel=softmax", f"optimization.fixed.LANES={lanes}")
        jobs.append(PlannedJob(overrides=lines, tasks=(row.task,), pruned=(), objective=time))
    plan = Plan(experiment="e", tasks=tuple(tasks), pruned=(), aggregate="e-1", jobs=tuple(jobs))
    titles = job_labels(plan).titles
    assert titles["generate", "g-1"] == "softmax w cpu LANES=1"
    assert titles["generate", "g-8"] == "softmax w cpu LANES=8"
    assert titles["compile", "c-1"] == "softmax w cpu"


def test_static_facts_where_nothing_was_measured(tmp_path: Path) -> None:
    """One line for each GPU target, in the units of the report; other choices and CPUs are left out."""
    facts = {
        "implementation": "triton",
        "registers": "26",
        "spills": "0",
        "shared_memory": "16",
        "threads_per_block": "128",
        "estimate_occupancy": "0.4375",
        "estimate_occupancy_limiter": "registers",
        "matrix_instructions": "",
        "code_bytes": "4736",
    }
    choices = (("cuda", "default"), ("cuda", "best occupancy"), ("cpu", "default"))
    rows = [TASK | facts | {"kind": kind, "choice": choice} for kind, choice in choices]
    (line,) = [each for each in ended(tmp_path, "static_facts.csv", *rows).splitlines() if "triton" in each]
    assert line.split()[4:] == ["26", "0", "16", "128", "44%", "registers", "-", "4,736"]
