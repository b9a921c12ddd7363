"""Launch jobs: their overrides in; one plan, one Snakemake DAG, and a return with the objective for each out.

Whatever sweeper proposed the jobs, they are planned together, so that a task that several have runs once.
Jobs of the sweep's earlier batches stay in the plan: nothing of theirs runs again, and the tables and the
report of the last batch are those of the whole sweep.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, env_override
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from pipeline.execution.run_results import RunResult, job_labels, result_of, result_text
from pipeline.execution.snakemake_command import (
    REFUSED,
    SnakemakeExit,
    check_executors,
    cores,
    is_looking,
    profile,
    run_snakemake,
)
from pipeline.execution.sweep.grid_sweeper import JobFailed, SweepStopped, is_grid
from pipeline.execution.sweep.job_results import (
    JobRecord,
    find_results,
    job_record,
    objective_text,
    results_text,
    write_result,
)
from pipeline.execution.sweep.sweep_jobs import JobFolders, LazyJobReturn, SweepJob, SweepJobs
from pipeline.execution.workflow import ROOT, Workflow
from pipeline.plan.config.compose import Compositions
from pipeline.plan.config.overrides import HYDRA
from pipeline.plan.plan_cache import plan_of_jobs, write_sweep
from pipeline.records.errors import ConfigError, KernelmillError, hint
from pipeline.records.planning.planned_tasks import JobResult, Plan, Reached, Unfinished
from pipeline.records.record import Record, to_json

REFUSAL = "Snakemake does not take these arguments or this profile (its line is above): nothing has run"
WANTED = ("auto", "required", "optional")
Overrides = tuple[str, ...]


class SweepResult(Record, frozen=True, kw_only=True):
    """A batch of jobs for programs: each job's record, and what the sweep came to so far."""

    jobs: tuple[JobRecord, ...]
    result: RunResult


class DagLauncher(Protocol):
    """What the plugin brings."""

    profile: str | None
    cores: Any
    arguments: Sequence[str]
    objective: str
    output: str
    finished: list[Overrides]
    hydra_context: HydraContext
    task_function: TaskFunction
    config: DictConfig


def launch(launcher: DagLauncher, job_overrides: Sequence[Sequence[str]], *, first: int) -> list[JobReturn]:
    """Run the jobs, numbered from `first`.

    Raises
    ------
    SweepStopped
        An override or a setting of the launcher is wrong, and nothing has run; or what comes after the jobs
        (tables, MLflow, report) failed.
    KeyboardInterrupt
        The user stopped it.
    """
    try:
        return _Launch(launcher, [tuple(lines) for lines in job_overrides], first).run()
    except KernelmillError as error:
        raise SweepStopped(f"error: {error}") from None


class _Launch:
    """One launch: a batch of jobs on top of those that finished before."""

    def __init__(self, launcher: DagLauncher, overrides: list[Overrides], first: int) -> None:
        self._launcher = launcher
        self._overrides = overrides
        self._arguments = _arguments(launcher)
        check_executors(self._arguments)
        self._required = _is_required(launcher)
        _refuse_hydra(overrides)
        together = (*launcher.finished, *overrides)
        known = Compositions()
        self._plan = plan_of_jobs(together, root=Path.cwd(), store=ROOT, known=known)
        self._planned = self._plan.jobs[len(launcher.finished) :]
        self._config = f"sweep={write_sweep(together, store=ROOT)}"
        self._sweep = SweepJobs(launcher.config, Path("conf"), known)
        self._jobs = self._sweep.make(overrides, first)

    def run(self) -> list[JobReturn]:
        """Folders, callbacks, Snakemake, results."""
        folders = JobFolders(self._sweep)
        for job in self._jobs:
            folders.write(job)
        self._call("on_job_start", task_function=self._launcher.task_function)
        with env_override(dict(self._launcher.config.hydra.job.env_set)):
            ended = run_snakemake(
                [*self._arguments, "--config", self._config],
                labels=job_labels(self._plan),
                quiet=self._launcher.output != "progress",
            )
        if ended.interrupted:
            raise KeyboardInterrupt
        returns = [LazyJobReturn(job, self._sweep.config, self._name) for job in self._jobs]
        if ended.code == REFUSED:
            raise SweepStopped(f"error: {REFUSAL}")
        if is_looking(self._arguments):
            for each in returns:
                each.completed(None)
            return list(returns)
        results = find_results(self._plan, self._planned, finished=ended.code == 0, root=ROOT)
        self._fill(returns, results)
        self._end(returns, results, ended)
        return list(returns)

    @property
    def _name(self) -> str:
        return str(self._launcher.config.hydra.job.name)

    def _fill(self, returns: Sequence[LazyJobReturn], results: Sequence[JobResult]) -> None:
        """Give each return its value or its error, and each folder its result."""
        summary = Path(Workflow(self._plan).aggregate)
        rows = zip(returns, self._jobs, self._planned, results, strict=True)
        for returned, job, planned, result in rows:
            if isinstance(result, Reached):
                returned.completed(result.value)
            elif isinstance(result, Unfinished) or self._required:
                returned.failed(_failure(job, result))
            else:
                returned.completed(None)
            write_result(job, planned, result, summary)

    def _end(
        self, returns: Sequence[LazyJobReturn], results: Sequence[JobResult], ended: SnakemakeExit
    ) -> None:
        """Tell the callbacks and the user."""
        by_job = dict(zip((job.number for job in self._jobs), returns, strict=True))
        self._call("on_job_end", job_return=by_job)
        self._print(results, ended)
        done = [not isinstance(result, Unfinished) for result in results]
        if ended.code != 0 and all(done):
            text = "all jobs finished, but not the tables, MLflow or the report: see above"
            raise SweepStopped(f"error: snakemake ended with exit code {ended.code}: {text}")
        finished = (lines for lines, fine in zip(self._overrides, done, strict=True) if fine)
        self._launcher.finished = [*self._launcher.finished, *finished]

    def _print(self, results: Sequence[JobResult], ended: SnakemakeExit) -> None:
        found = result_of(self._plan, ROOT, ended)
        if self._launcher.output == "json":
            summary = Path(Workflow(self._plan).aggregate)
            rows = zip(self._jobs, self._planned, results, strict=True)
            jobs = tuple(job_record(*row, summary) for row in rows)
            print(to_json(SweepResult(jobs=jobs, result=found)).decode(), flush=True)
        else:
            print(result_text(found))
            print(f"\n{results_text(self._jobs, self._planned, results)}", flush=True)

    def _call(self, event: str, **given: Any) -> None:
        """Call the user's callbacks for each job, its configuration being Hydra's meanwhile."""
        callbacks = self._launcher.hydra_context.callbacks
        if not callbacks.callbacks:
            return
        before = HydraConfig.instance().cfg
        try:
            for job in self._jobs:
                config = self._sweep.config(job)
                HydraConfig.instance().set_config(config)
                values = {
                    name: each[job.number] if event == "on_job_end" else each for name, each in given.items()
                }
                getattr(callbacks, event)(config=config, **values)
        finally:
            HydraConfig.instance().cfg = before


def _arguments(launcher: DagLauncher) -> list[str]:
    """Snakemake's, from `hydra.launcher.*`; those that stand there in full win."""
    more = [str(argument) for argument in launcher.arguments]
    chosen: list[str] = []
    if launcher.profile is not None:
        chosen += ["--profile", profile(str(launcher.profile))]
    if launcher.cores is not None:
        chosen += ["--cores", str(launcher.cores)]
    elif launcher.profile is None:  # a profile says itself how many
        chosen += cores(more)
    return [*chosen, *more]


def _is_required(launcher: DagLauncher) -> bool:
    """Whether somebody needs a number of each job."""
    if launcher.objective not in WANTED:
        known = hint(launcher.objective, WANTED)
        raise ConfigError(f"hydra.launcher.objective={launcher.objective}: unknown{known}")
    if launcher.objective == "auto":
        return not is_grid(launcher.config)
    return launcher.objective == "required"


def _refuse_hydra(overrides: Sequence[Overrides]) -> None:
    for lines in overrides:
        for line in lines:
            if line.lstrip("+~").startswith(HYDRA):
                raise ConfigError(f"{line}: a setting of Hydra, which all jobs of a sweep have alike")


def _failure(job: SweepJob, result: JobResult) -> JobFailed:
    return JobFailed(f"error: job {job.number} ({' '.join(job.lines)}): {objective_text(result)}")


def run_alone(config: DictConfig) -> float | None:
    """One job of another launcher (`hydra/launcher=basic`): a run of its own; its objective.

    Raises
    ------
    JobFailed
        It did not finish.
    """
    overrides = OmegaConf.to_container(config.hydra.overrides.task)
    assert isinstance(overrides, list)
    lines = tuple(str(line) for line in overrides)
    try:
        plan: Plan = plan_of_jobs((lines,), root=Path.cwd(), store=ROOT)
        sweep = f"sweep={write_sweep((lines,), store=ROOT)}"
        ended = run_snakemake(["--cores", "all", "--config", sweep], labels=job_labels(plan))
        (result,) = find_results(plan, plan.jobs, finished=ended.code == 0, root=ROOT)
    except KernelmillError as error:
        raise JobFailed(f"error: {error}") from None
    if ended.interrupted:
        raise KeyboardInterrupt
    if ended.code == 0:
        print(result_text(result_of(plan, ROOT, ended)))
    if isinstance(result, Reached):
        return result.value
    if isinstance(result, Unfinished) or not is_grid(config):
        raise JobFailed(f"error: {objective_text(result)}")
    print(objective_text(result), file=sys.stderr)
    return None
