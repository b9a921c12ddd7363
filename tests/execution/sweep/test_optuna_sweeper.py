"""End to end: a small Hydra app as a process of its own, with the plugin and Hydra's basic launcher."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from pipeline.records.errors import installation
from tests import warm_commands
from tests.paths import ROOT

optuna = pytest.importorskip("optuna", reason="not installed: python -m pip install -e '.[optuna]'")

APP = Path(__file__).parent / "app" / "toy.py"
OPTUNA = (
    "-m",
    "hydra/sweeper=optuna",
    "hydra.sweep.dir=out",
    "hydra.sweeper.batch=3",
    "hydra.sweeper.n_trials=6",
)


def command(*arguments: str) -> list[str]:
    """The app's command line."""
    return [sys.executable, str(APP), *arguments]


def environment(**more: str) -> dict[str, str]:
    """The plugin is found in the repository's root, as `kernelmill run` finds it."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **more}


def sweep(folder: Path, *arguments: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the app to its end."""
    ended = warm_commands.run(
        [str(APP), *OPTUNA, *arguments], cwd=folder, env=environment(**variables), timeout=120
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def calls(folder: Path) -> list[str]:
    """The jobs that ran, in order: their number and overrides."""
    file = folder / "calls.txt"
    return file.read_text().splitlines() if file.is_file() else []


def only_study(folder: Path) -> optuna.Study:
    """The one study of the default storage."""
    return optuna.load_study(study_name=None, storage=f"sqlite:///{folder}/artifacts/optuna.db")


@pytest.mark.slow
def test_sweep_of_every_kind(tmp_path: Path) -> None:
    """Choices, numbers and groups vary, plain values do not; the best and its command are printed."""
    space = [
        *("x=interval(0.1,2)", "y=range(1,4)", "shape=choice(round,square)", "size=16,32"),
        "optimization.fixed.BLOCK_M=choice(16,32,64)",
    ]
    ended = sweep(tmp_path, *space, "two=false")
    assert len(calls(tmp_path)) == 6
    assert [line.split()[0] for line in calls(tmp_path)] == list("012345")
    assert all("two=false" in line and "optimization.fixed.BLOCK_M=" in line for line in calls(tmp_path))
    results = yaml.safe_load((tmp_path / "out" / "optimization_results.yaml").read_text())
    assert results["name"] == "optuna"
    assert set(results["best_params"]) == {"x", "y", "shape", "size", "optimization.fixed.BLOCK_M"}
    assert results["best_params"]["size"] in (16, 32)
    study = only_study(tmp_path)
    assert results["best_value"] == study.best_value
    assert (tmp_path / "out" / "multirun.yaml").is_file()
    assert (tmp_path / "out" / "0" / ".hydra" / "overrides.yaml").is_file()
    lines = ended.stdout.splitlines()
    assert any(
        line.startswith(f"optuna   study {study.study_name} in artifacts/optuna.db: tpe, a space of")
        for line in lines
    )
    assert any(line.startswith("optuna   6 of 6 trials; best ") for line in lines)
    again = next(line.removeprefix("again    ") for line in lines if line.startswith("again"))
    assert again.startswith(f"python {APP} two=false x=")


@pytest.mark.slow
def test_same_command_resumes(tmp_path: Path) -> None:
    """Once more: nothing to do. With more trials: only those. Another sampler: a study of its own."""
    sweep(tmp_path, "y=range(0,50)")
    assert "resumed: 6 of 6 trials" in sweep(tmp_path, "y=range(0,50)").stdout
    assert len(calls(tmp_path)) == 6
    sweep(tmp_path, "y=range(0,50)", "hydra.sweeper.n_trials=8")
    assert [line.split()[0] for line in calls(tmp_path)] == list("01234567")
    sweep(tmp_path, "y=range(0,50)", "hydra/sweeper/sampler=random")
    assert len(calls(tmp_path)) == 14


@pytest.mark.slow
def test_goes_on_after_a_kill(tmp_path: Path) -> None:
    """SIGKILL in the middle of a batch: what was reported is kept, what was running is launched again."""
    arguments = ("y=range(0,50)", "x=interval(0,2)", "pause_seconds=0.2")
    process = subprocess.Popen(
        command(*OPTUNA, *arguments), cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while len(calls(tmp_path)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = [line.split(maxsplit=1)[1] for line in calls(tmp_path)]
    assert len(before) == 5, "killed too late"
    told = {
        trial.number: trial.values for trial in only_study(tmp_path).trials if trial.state.name == "COMPLETE"
    }
    assert len(told) == 3
    ended = sweep(tmp_path, *arguments)
    assert "resumed: 3 of 6 trials" in ended.stdout
    trials = only_study(tmp_path).trials
    assert {number: trials[number].values for number in told} == told
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 3 + ["FAIL"] * 3 + ["COMPLETE"] * 3
    after = [line.split(maxsplit=1)[1] for line in calls(tmp_path)[5:]]
    assert after[:2] == before[3:]
    assert len(after) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gives", "reason"),
    [("exception", "ValueError: size does not fit"), ("not_a_number", "the job returned nan")],
)
def test_failures(tmp_path: Path, gives: str, reason: str) -> None:
    """Half of the points fail: each once, with its reason; the others are all evaluated."""
    ended = sweep(tmp_path, "size=1,2,3,32,64,128", f"gives={gives}", "from_size=32")
    assert "6 of 6 trials, 3 failed; best 0 " in ended.stdout
    assert len(calls(tmp_path)) == 6
    failed = [trial for trial in only_study(tmp_path).trials if trial.state.name == "FAIL"]
    assert {trial.user_attrs["reason"] for trial in failed} == {reason}


@pytest.mark.slow
def test_too_many_failures(tmp_path: Path) -> None:
    """All fail: one line, and no results."""
    ended = sweep(tmp_path, "size=range(1,99)", "gives=not_a_number", code=1)
    assert ended.stderr.splitlines()[-1] == (
        "error: 6 of 6 jobs failed, hydra.sweeper.max_failure_rate is 0.5; the last one: the job returned nan"
    )
    assert not (tmp_path / "out" / "optimization_results.yaml").exists()


@pytest.mark.slow
def test_several_objectives(tmp_path: Path) -> None:
    """A sequence of values, a direction for each; the file lists what no other one beats."""
    ended = sweep(tmp_path, "x=interval(0,2)", "two=true", "hydra.sweeper.direction=[minimize,maximize]")
    results = yaml.safe_load((tmp_path / "out" / "optimization_results.yaml").read_text())
    assert len(results["solutions"]) == 1  # minus the first value is the second: one is best in both
    assert "best     " in ended.stdout


@pytest.mark.slow
def test_yaml_of_the_published_plugin(tmp_path: Path) -> None:
    """Its keys mean here what they mean there; a study in memory leaves no file."""
    arguments = [str(APP), "--multirun", "--config-name=published", "hydra.sweep.dir=out"]
    ended = warm_commands.run(arguments, cwd=tmp_path, env=environment())
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "study sphere in memory" in ended.stdout
    assert len(calls(tmp_path)) == 6
    assert all("size=32" in line for line in calls(tmp_path))
    assert not (tmp_path / "artifacts").exists()
    results = yaml.safe_load((tmp_path / "out" / "optimization_results.yaml").read_text())
    assert set(results) == {"name", "best_params", "best_value", "best_trial"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x=1"], r"error: nothing to search: give key=choice\(a,b\)"),
        (
            ["shape=interval(0,1)"],
            r"error: shape=interval\(0,1\): shape is a config group.*\(known: round, square\)",
        ),
        (
            ["y=range(1,4)", "hydra.sweeper.sampler=annealing"],
            "error: unknown sampler 'annealing' .known: brute_force, ",
        ),
        (["size=1,2", "hydra/sweeper/sampler=cmaes"], "error: sampler cmaes: expected two or more numbers"),
        pytest.param(
            ["y=range(1,4)", "hydra.sweeper.study_name=a", "x=interval(0,1)"],
            "error: study 'a' in artifacts/optuna.db: it was made for x: not searched, now it is interval",
            marks=pytest.mark.slow,
        ),
        (["y=range(1,4)", "hydra.sweeper.storage=nosuch://x"], "error: Optuna's storage nosuch://x: "),
    ],
)
def test_errors_are_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    """The last line of stderr says it; there is no traceback, and no job ran."""
    if "hydra.sweeper.study_name=a" in arguments:
        sweep(tmp_path, "y=range(1,4)", "hydra.sweeper.study_name=a")
        (tmp_path / "calls.txt").unlink()
    ended = sweep(tmp_path, *arguments, code=1)
    (line,) = ended.stderr.splitlines()
    assert re.match(message, line), line
    assert calls(tmp_path) == []


def test_unknown_sampler_of_the_group(tmp_path: Path) -> None:
    """Hydra itself lists the options."""
    ended = sweep(tmp_path, "x=interval(0,1)", "hydra/sweeper/sampler=annealing", code=1)
    assert "Could not find 'hydra/sweeper/sampler/annealing'" in ended.stderr
    assert "cmaes" in ended.stderr


@pytest.mark.slow
def test_optuna_is_not_installed(tmp_path: Path) -> None:
    """One line says how to get it; Hydra's other sweepers do not miss it."""
    (tmp_path / "optuna.py").write_text("raise ImportError('No module named optuna')")
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        command(*OPTUNA, "x=interval(0,1)"),
        cwd=tmp_path,
        env=environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    cause = "Optuna cannot be imported (No module named optuna)"
    assert ended.stderr == f"error: {cause}: {installation('optuna')}\n"
    basic = subprocess.run(
        command("-m", "y=1,2", "hydra.sweep.dir=out"),
        cwd=tmp_path,
        env=environment(PYTHONPATH=path),
        check=False,
    )
    assert basic.returncode == 0
    assert len(calls(tmp_path)) == 2
