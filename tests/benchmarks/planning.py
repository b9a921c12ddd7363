"""How long a sweep of a thousand tasks takes until Snakemake starts, and where the time goes.

python -m tests.benchmarks.planning [--jobs 1000] [--repeat 3]

Each figure is of a process of its own in an empty artifact folder: the start of Python, Hydra's composition
of the sweep, the plan with all specs on disk, and the folders of all jobs. Only Snakemake is not started. The
parts are CPU time, which a busy machine disturbs less; MiB is the largest resident memory.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.paths import ROOT

LIMIT = 5.0  # seconds for 1,000 tasks
GRID = (
    "kernel=softmax,softmax_backward,rms_norm,rms_norm_backward,matmul,matmul_bias_gelu",
    "workload=awkward,bert_base,llama3_8b_decode,llama3_8b_layer,llama3_8b_prefill,long_rows,vit_b16",
    "hardware=cpu,a100,h100,h200,mi300x",
    "optimization=baseline,defaults,essential,full,no_vectorization",
)
ONE = ("kernel=softmax", "hardware=cpu", "optimization=essential", "workload=llama3_8b_decode")


def mixtures(jobs: int) -> dict[str, tuple[str, ...]]:
    """Sweeps of about so many jobs: by choices, by values of one group or another, by settings."""
    few = max(1, jobs // 40)
    return {
        "choices": GRID,
        "workload value": (*ONE, f"workload.dimensions.tokens=range(1,{jobs + 1})"),
        "gpu, workload value": (
            *ONE[:1],
            "hardware=h200",
            *ONE[2:],
            f"workload.dimensions.tokens=range(1,{jobs + 1})",
        ),
        "kernel value": (*ONE, f"+kernel.attributes.shift=range(1,{jobs + 1})"),
        "profile value": (*ONE, f"profile.batches_at_most=range(30,{jobs + 30})"),
        "choices and values": (
            "kernel=softmax,rms_norm",
            "workload=bert_base,llama3_8b_decode",
            "hardware=cpu,h200",
            "optimization=essential",
            "verify=fast,standard",
            f"workload.dimensions.tokens=range(1,{few * 5 // 2 + 1})",
        ),
    }


def main(arguments: list[str]) -> int:
    """Command line; returns 1 where a sweep of 1,000 tasks takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", help="one of the mixtures")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child is not None:
        child(options.child)
        return 0
    chosen = {name: lines for name, lines in mixtures(options.jobs).items() if options.only in (None, name)}
    # Removed at the end and not one by one: ext4 leaves inodes alone that were freed in the last minutes, and
    # passes them all over for each new file, which then takes ten times as long.
    with tempfile.TemporaryDirectory(prefix="kernelmill-planning-") as scratch:
        met = [_report(name, lines, options.repeat, Path(scratch)) for name, lines in chosen.items()]
    return 0 if all(met) else 1


def _report(name: str, lines: tuple[str, ...], repeat: int, scratch: Path) -> bool:
    """Measure a mixture and print it; whether it keeps the limit."""
    runs = [measure(lines, Path(tempfile.mkdtemp(dir=scratch))) for _ in range(repeat)]
    seconds = statistics.median(run["seconds"] for run in runs)
    best = min(runs, key=lambda run: abs(run["seconds"] - seconds))
    print(
        f"{name}: {best['jobs']} jobs, {best['tasks']} tasks, {best['mebibytes']} MiB:"
        f" {seconds:.2f} s ({best['cpu']:.2f} s of CPU)",
        flush=True,
    )
    for phase, spent in best["phases"].items():
        print(f"    {spent:6.2f} s  {phase}")
    return 1000 * seconds / max(1000, best["tasks"]) <= LIMIT


def measure(lines: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """One sweep in a process and a folder of its own."""
    for part in ("conf", "kernels"):
        shutil.copytree(ROOT / part, folder / part)
    command = [sys.executable, "-m", "tests.benchmarks.planning", "--child", *lines]
    before = _cpu_seconds()
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    seconds = time.perf_counter() - began
    process.wait()
    cpu = _cpu_seconds() - before
    if not line.startswith("{"):
        raise SystemExit(f"the sweep failed: {line}")
    return {"seconds": seconds, "cpu": cpu, **json.loads(line)}


def _cpu_seconds() -> float:
    """Of the processes that have ended: what the sweep costs, whoever else is at work on this machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


class Clock:
    """CPU seconds spent in functions, each without what is counted elsewhere."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._inner: list[float] = []

    def wrap(self, owner: Any, name: str, phase: str) -> None:
        """Count the time of a function."""
        real: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **keywords: Any) -> Any:
            began = time.process_time()
            self._inner.append(0.0)
            try:
                return real(*arguments, **keywords)
            finally:
                whole = time.process_time() - began
                self.spent[phase] = self.spent.get(phase, 0.0) + whole - self._inner.pop()
                if self._inner:
                    self._inner[-1] += whole

        setattr(owner, name, timed)


def child(lines: list[str]) -> None:
    """Do all that the front door does until it would start Snakemake, and say what CPU time that took."""
    from pipeline.execution.sweep import command_line, dag_launcher, grid_sweeper, sweep_jobs
    from pipeline.plan import plan_cache, planner, spec_files
    from pipeline.plan.identity import stage_builds
    from pipeline.plan.tasks import resolution, stage_specs, task_maker

    clock = Clock()
    clock.wrap(grid_sweeper, "combinations", "combinations")
    clock.wrap(dag_launcher, "plan_of_jobs", "plan: the rest")
    clock.wrap(plan_cache, "_contents", "plan: what it is made from")
    clock.wrap(planner, "gather", "plan: options composed and checked")
    clock.wrap(planner, "make_plan", "plan: jobs and aggregate")
    clock.wrap(task_maker.TaskMaker, "task", "plan: tasks")
    clock.wrap(stage_specs.SpecMaker, "of", "plan: specs")
    clock.wrap(spec_files.SpecFiles, "put", "plan: specs written")
    clock.wrap(planner, "mutate_specs", "plan: mutants")
    clock.wrap(stage_builds.StageBuilds, "_of_backend", "plan: code and tools")
    clock.wrap(stage_builds.StageBuilds, "generate", "plan: code and tools")
    clock.wrap(stage_builds.StageBuilds, "aggregate", "plan: code and tools")
    clock.wrap(resolution.Spaces, "counts", "plan: spaces solved")
    clock.wrap(sweep_jobs.SweepJobs, "make", "jobs' configurations")
    clock.wrap(sweep_jobs.JobFolders, "write", "jobs' folders")
    imported = time.process_time()
    plans: list[Any] = []

    def instead(arguments: list[str], **_: Any) -> None:
        made = plans[-1]
        whole = time.process_time()
        phases = {"imports (in part)": imported, **clock.spent}
        phases["the rest (Hydra, and imports)"] = whole - sum(phases.values())
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        found = {"jobs": len(made.jobs), "tasks": len(made.tasks), "mebibytes": peak}
        print(
            json.dumps({**found, "phases": dict(sorted(phases.items(), key=lambda each: -each[1]))}),
            flush=True,
        )
        raise SystemExit(0)

    real = dag_launcher.plan_of_jobs

    def remembered(*arguments: Any, **keywords: Any) -> Any:
        plans.append(real(*arguments, **keywords))
        return plans[-1]

    dag_launcher.plan_of_jobs = remembered
    dag_launcher.run_snakemake = instead
    command_line.multirun(["-m", *lines], ())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
