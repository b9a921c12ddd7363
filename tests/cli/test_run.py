"""`kernelmill run`: arguments for Snakemake and Hydra, and errors in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution import plan_listing, run_results, snakemake_command, workflow
from pipeline.execution.snakemake_command import SnakemakeExit
from pipeline.records.planning.planned_tasks import Plan
from tests import warm_commands
from tests.paths import ROOT


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`kernelmill run` in a process of its own."""
    return warm_commands.run(["-m", "pipeline", "run", *arguments], cwd=ROOT, env=os.environ)


def test_help_lists_the_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group with the options that conf/ has."""
    monkeypatch.chdir(ROOT)
    assert main(["run", "--help"]) == 0
    text = capsys.readouterr().out
    for word in (
        "attention, attention_backward, ",
        "hardware: a100",
        "experiment: backward, default",
        "--cfg job",
    ):
        assert word in text


def test_configuration() -> None:
    """`--cfg job` shows what the overrides give."""
    text = ask("--cfg", "job", "kernel=softmax", "verify=standard").stdout
    assert "name: softmax" in text
    assert "name: standard" in text


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("kernel=sofmax", "error: In 'config': Could not find 'kernel/sofmax'"),
        ("verify.sedes=3", "error: there is no 'sedes' in verify"),
    ],
)
def test_asking_with_a_mistake(override: str, text: str) -> None:
    """A line, as in a run."""
    ended = ask("--cfg", "job", override)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(text)


def test_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    """Hydra writes no folder and no log of its own."""
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    command = [sys.executable, "-m", "pipeline", "run", "--cfg", "job"]
    subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]


@pytest.mark.parametrize("arguments", [["run"], ["run", "--cfg", "job"], ["sweep", "kernel=softmax,matmul"]])
def test_somewhere_else(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    """Where no project is, a line says what one consists of."""
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {tmp_path}: no project is here (it has conf/, kernels/, ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["--cores", "all"]),
        (["kernel=a"], ["--cores", "all", "--config", 'overrides=["kernel=a"]']),
        (["kernel=a", "--", "verify"], ["--cores", "all", "verify", "--config", 'overrides=["kernel=a"]']),
        (["--", "--cores", "3", "-n"], ["--cores", "3", "-n"]),
    ],
)
def test_snakemake_gets_the_same_overrides(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: list[str]
) -> None:
    """Overrides as Snakemake's configuration, the rest as it is; its exit code is ours."""
    calls: list[list[str]] = []

    def snakemake(given: list[str], **_: object) -> SnakemakeExit:
        calls.append(list(given))
        return SnakemakeExit(code=7, interrupted=False)

    plan = Plan(experiment="e", tasks=(), pruned=(), aggregate="e-1")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(workflow, "find_plan", lambda *_, **__: plan)
    monkeypatch.setattr(snakemake_command, "run_snakemake", snakemake)
    assert main(["run", *arguments]) == 7
    assert calls == [expected]


def test_a_finished_run_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results that are there, without Snakemake."""
    plan = Plan(experiment="e", tasks=(), pruned=(), aggregate="e-1")
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    (tmp_path / "Snakefile").symlink_to(ROOT / "Snakefile")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workflow, "find_plan", lambda *_, **__: plan)
    monkeypatch.setattr(run_results, "is_finished", lambda *_: True)
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    main(["run"])
    said = capsys.readouterr()
    assert said.err == "artifacts: not writable; these are the results that are there\n"
    assert said.out == "\ne: 0 of 0 variants passed the stages that have run\n"


def test_an_interrupt_while_planning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C is no bug: a line, and the exit code that shells give; only what keeps results says so."""

    def interrupted(*_: object, **__: object) -> Plan:
        raise KeyboardInterrupt

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(workflow, "find_plan", interrupted)
    assert main(["run", "experiment=smoke", "--", "--dry-run"]) == 130
    kept = "stopped: finished results are kept, the same command continues"
    assert capsys.readouterr().err.split("\n") == ["", kept, ""]
    monkeypatch.setattr(plan_listing, "current_plan", interrupted)
    assert main(["plan", "experiment=smoke"]) == 130
    assert capsys.readouterr().err.split("\n") == ["", "stopped", ""]


def test_an_interrupt_while_jobs_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and no table of what has run until then; a program gets what there is."""
    plan = Plan(experiment="e", tasks=(), pruned=(), aggregate="e-1")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(workflow, "find_plan", lambda *_, **__: plan)
    ended = SnakemakeExit(code=1, interrupted=True)
    monkeypatch.setattr(snakemake_command, "run_snakemake", lambda *_, **__: ended)
    assert main(["run"]) == 130
    said = capsys.readouterr()
    assert (said.out, said.err.strip()) == (
        "",
        "stopped: finished results are kept, the same command continues",
    )
    assert main(["run", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["variants"] == 0
