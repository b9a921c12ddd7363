"""The launcher's side of a sweep, with a stand-in for Snakemake."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobStatus
from omegaconf import DictConfig, OmegaConf

from hydra_plugins.kernelmill_launcher import KernelmillLauncher
from pipeline.execution.snakemake_command import SnakemakeExit
from pipeline.execution.sweep import dag_launcher
from pipeline.execution.sweep.grid_sweeper import JobFailed, SweepStopped
from pipeline.plan.identity import stage_builds
from pipeline.records.planning.planned_tasks import JobResult, Missed, Reached, Sweep, Unfinished
from pipeline.records.record import read_record
from tests.paths import ROOT
from tests.plan.project import read_once

CELL = ("workload=awkward", "optimization=baseline")
JOBS = [("kernel=softmax", "hardware=cpu", *CELL), ("kernel=softmax", "hardware=h200", *CELL)]
REACHED = Reached(value=0.5, unit="s")
ABSENT = Missed(reason="softmax x awkward x h200: device unavailable")


class Stage:
    """A launcher in a folder of its own, and what its Snakemake was asked for."""

    def __init__(self, master: Callable[..., DictConfig], monkeypatch: pytest.MonkeyPatch) -> None:
        self._master = master
        self.calls: list[list[str]] = []
        self.ended = SnakemakeExit(code=0, interrupted=False)
        self.results: list[JobResult] = [REACHED, ABSENT]
        self.events: list[tuple[str, int, Any]] = []
        monkeypatch.setattr(dag_launcher, "run_snakemake", self._snakemake)
        monkeypatch.setattr(dag_launcher, "find_results", lambda _, jobs, **__: self.results[: len(jobs)])

    def _snakemake(self, arguments: list[str], **_: object) -> SnakemakeExit:
        self.calls.append(arguments)
        return self.ended

    def launcher(self, *lines: str, callbacks: bool = False) -> KernelmillLauncher:
        """As Hydra would make it."""
        config = self._master(*lines)
        given = {key: value for key, value in config.hydra.launcher.items() if key != "_target_"}
        launcher = KernelmillLauncher(**given)
        context = SimpleNamespace(callbacks=self if callbacks else SimpleNamespace(callbacks=[]))
        launcher.setup(hydra_context=context, task_function=lambda _: None, config=config)
        return launcher

    callbacks = ["one"]

    def on_job_start(self, config: DictConfig, *, task_function: Any) -> None:
        """A user's callback."""
        assert HydraConfig.get().job.num == config.hydra.job.num
        self.events.append(("start", config.hydra.job.num, config.kernel.name))

    def on_job_end(self, config: DictConfig, job_return: Any) -> None:
        """Another one."""
        self.events.append(("end", config.hydra.job.num, job_return.status))


@pytest.fixture
def stage(master: Callable[..., DictConfig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    """In an empty folder with our conf/ and kernels/."""
    for part in ("conf", "kernels", "workflows"):
        shutil.copytree(ROOT / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stage_builds, "Code", read_once)
    return Stage(master, monkeypatch)


def test_all_jobs_are_one_dag(stage: Stage, tmp_path: Path) -> None:
    """One Snakemake, whose sweep file has every job; folders with Hydra's files and the result."""
    returns = stage.launcher().launch(JOBS, 5)
    ((*arguments, sweep),) = stage.calls
    assert arguments == ["--cores", "all", "--config"]
    assert read_record(Path(sweep.removeprefix("sweep=")), Sweep).jobs == tuple(JOBS)
    assert [each.status for each in returns] == [JobStatus.COMPLETED] * 2
    assert [each.return_value for each in returns] == [0.5, None]
    for number in (5, 6):
        folder = tmp_path / "sweep" / str(number)
        assert {path.name for path in folder.iterdir()} == {".hydra", "job.json"}
        saved = OmegaConf.load(folder / ".hydra" / "hydra.yaml")
        assert (saved.hydra.job.num, saved.hydra.job.id) == (number, str(number))


@pytest.mark.slow
def test_a_line_for_each_job(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """Number, objective or reason, overrides in which they differ."""
    stage.launcher().launch(JOBS, 9)
    lines = capsys.readouterr().out.splitlines()[-4:]
    assert lines[0] == f"overrides of all jobs: kernel=softmax {' '.join(CELL)}"
    assert lines[1] == "job  time (minimize)  overrides"
    assert lines[2] == "  9           500 ms  hardware=cpu"
    assert lines[3] == f" 10                -  hardware=h200  ({ABSENT.reason})"


@pytest.mark.slow
def test_a_sweeper_that_needs_numbers(stage: Stage) -> None:
    """A job without one has failed, with the reason; a grid only goes on."""
    lines = ["++hydra.sweeper._target_=hydra_plugins.other.OptunaSweeper"]
    returns = stage.launcher(*lines).launch(JOBS, 0)
    assert [each.status for each in returns] == [JobStatus.COMPLETED, JobStatus.FAILED]
    with pytest.raises(JobFailed, match=r"error: job 1 \(kernel=softmax .*\): .*device unavailable"):
        _ = returns[1].return_value
    optional = stage.launcher(*lines, "hydra.launcher.objective=optional").launch(JOBS, 0)
    assert optional[1].return_value is None
    required = stage.launcher("hydra.launcher.objective=required").launch(JOBS, 0)
    assert required[1].status is JobStatus.FAILED


def test_a_job_that_failed(stage: Stage) -> None:
    """Its return is an error whatever the sweeper wants; the others have their values."""
    stage.results = [REACHED, Unfinished(reason="compile did not finish")]
    stage.ended = SnakemakeExit(code=1, interrupted=False)
    launcher = stage.launcher()
    returns = launcher.launch(JOBS, 0)
    assert returns[0].return_value == 0.5
    with pytest.raises(JobFailed, match="compile did not finish"):
        _ = returns[1].return_value
    assert launcher.finished == [JOBS[0]], "the failed one is not tried again with the next batch"


@pytest.mark.slow
def test_what_comes_after_the_jobs_failed(stage: Stage) -> None:
    """Each job has its value, but the sweep has no tables: that is an error."""
    stage.ended = SnakemakeExit(code=3, interrupted=False)
    with pytest.raises(SweepStopped, match="exit code 3: all jobs finished, but not the tables"):
        stage.launcher().launch(JOBS, 0)


@pytest.mark.slow
def test_batches_are_one_sweep(stage: Stage) -> None:
    """A later batch's plan has the earlier ones' jobs, so that its report is that of all."""
    launcher = stage.launcher()
    launcher.launch(JOBS[:1], 0)
    stage.results = [ABSENT]
    returns = launcher.launch(JOBS[1:], 1)
    assert [each.return_value for each in returns] == [None]
    sweep = Path(stage.calls[1][-1].removeprefix("sweep="))
    assert read_record(sweep, Sweep).jobs == tuple(JOBS)


@pytest.mark.slow
def test_callbacks(stage: Stage) -> None:
    """Every job starts and ends for the user's callbacks, with its own configuration."""
    stage.launcher(callbacks=True).launch(JOBS, 0)
    done = JobStatus.COMPLETED
    assert stage.events == [
        ("start", 0, "softmax"),
        ("start", 1, "softmax"),
        ("end", 0, done),
        ("end", 1, done),
    ]


def test_interrupted(stage: Stage) -> None:
    """Ctrl-C ends the sweep once Snakemake has ended."""
    stage.ended = SnakemakeExit(code=1, interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        stage.launcher().launch(JOBS, 0)


@pytest.mark.slow
def test_dry_run(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """Where Snakemake only looks there is nothing to read, and no job has failed."""
    returns = stage.launcher("hydra.launcher.arguments=[-n]").launch(JOBS, 0)
    assert [each.return_value for each in returns] == [None, None]
    assert "job," not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["hydra.launcher.cores=3"], ["--cores", "3"]),
        (["hydra.launcher.arguments=[--jobs,2,verify]"], ["--jobs", "2", "verify"]),
        (["hydra.launcher.profile=conf/profile_of_a_site"], ["--profile", "conf/profile_of_a_site"]),
        (
            ["hydra.launcher.profile=site", "hydra.launcher.cores=4"],
            ["--profile", "workflows/profiles/site", "--cores", "4"],
        ),
    ],
)
def test_snakemakes_arguments(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], expected: list[str]
) -> None:
    """A profile says itself how many cores; one of workflows/profiles is known by its name."""
    shutil.rmtree(tmp_path / "workflows")
    for folder in ("workflows/profiles/site", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr("snakemake.cli.get_profile_dir", lambda name: name)
    stage.launcher(*lines).launch(JOBS, 0)
    assert stage.calls[0][:-2] == expected


@pytest.mark.parametrize(
    ("lines", "job", "text"),
    [
        (["hydra.launcher.profile=sit"], JOBS[0], "error: hydra.launcher.profile=sit: no such profile"),
        (["hydra.launcher.objective=some"], JOBS[0], "error: hydra.launcher.objective=some: unknown"),
        ([], ("kernel=nope",), r"error: kernel=nope: unknown kernel 'nope' \(known: "),
        ([], ("hydra.job.name=x",), "error: hydra.job.name=x: a setting of Hydra, which all jobs"),
    ],
)
def test_a_mistake_stops_before_anything_runs(
    stage: Stage, tmp_path: Path, lines: list[str], job: tuple[str, ...], text: str
) -> None:
    """One line for Hydra to print; no folder, no Snakemake."""
    with pytest.raises(SweepStopped, match=text) as caught:
        stage.launcher(*lines).launch([job], 0)
    assert "\n" not in str(caught.value)
    assert stage.calls == []
    assert not (tmp_path / "sweep").exists()


@pytest.mark.slow
def test_arguments_that_snakemake_does_not_take(stage: Stage) -> None:
    """A typo in a profile or after `--`: nothing has run, so nothing is said of jobs."""
    stage.ended = SnakemakeExit(code=2, interrupted=False)
    with pytest.raises(SweepStopped, match="not take these arguments or this profile .* nothing has run"):
        stage.launcher().launch(JOBS, 0)
