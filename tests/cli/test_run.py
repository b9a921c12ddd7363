"""`python -m pipeline`: help, configuration and completion by Hydra; runs through Snakemake."""

import subprocess
import sys
from pathlib import Path

import pytest

import pipeline.cli.run as front
from pipeline.cli import completion
from pipeline.execution.snakemake_command import SnakemakeExit
from pipeline.records.plan import Plan
from tests.paths import ROOT


def ask(*arguments: str, line: str | None = None) -> str:
    """What a command prints."""
    import os

    environment = {**os.environ} | ({"COMP_LINE": line} if line else {})
    command = [sys.executable, "-m", "pipeline", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout


def test_help_names_commands_and_options() -> None:
    """Usage, examples, every group with its options."""
    text = ask("--help")
    assert text.startswith("Kernelmill: ")
    for word in (
        "python -m pipeline.cli.plan",
        "kernel: liger_cross_entropy",
        ", matmul, matmul_bias_gelu, ",
        "hardware: a100",
        "experiment: backward, default",
        "--cfg job",
    ):
        assert word in text


def test_configuration() -> None:
    """`--cfg job` shows what the overrides give."""
    text = ask("--cfg", "job", "kernel=softmax", "verify=standard")
    assert "name: softmax" in text
    assert "name: standard" in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python -m pipeline kern", ["kernel="]),
        ("python -m pipeline kernel=so", ["kernel=softmax", "kernel=softmax_backward"]),
        ("python -m pipeline experiment=smoke workload=bert", ["workload=bert_base"]),
    ],
)
def test_completion(line: str, expected: list[str]) -> None:
    """Groups and their options are completed."""
    assert ask("-sc", "query=bash", line=line).split() == expected


def test_completion_script_is_bash() -> None:
    """The script that a shell evaluates."""
    text = completion.script("install=bash")
    assert text is not None
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    assert completion.script("query=bash") is None


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("kernel=sofmax", "error: In 'config': Could not find 'kernel/sofmax'"),
        ("verify.sedes=3", "error: there is no 'sedes' in verify"),
    ],
)
def test_asking_with_a_mistake(override: str, text: str) -> None:
    """A line, as in a run."""
    command = [sys.executable, "-m", "pipeline", "--cfg", "job", override]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith(text)


def test_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    """Hydra writes no folder and no log of its own."""
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    command = [sys.executable, "-m", "pipeline", "--cfg", "job"]
    subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-m", "kernel=softmax,matmul"]])
def test_somewhere_else(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    """Where no project is, a line says what one consists of."""
    monkeypatch.chdir(tmp_path)
    assert front.main(arguments) == 1
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

    def snakemake(given: list[str]) -> SnakemakeExit:
        calls.append(list(given))
        return SnakemakeExit(code=7, interrupted=False)

    plan = Plan(experiment="e", tasks=(), pruned=(), aggregate="e-1")
    monkeypatch.setattr(front, "current_plan", lambda *_, **__: plan)
    monkeypatch.setattr(front, "run_snakemake", snakemake)
    assert front.main(arguments) == 7
    assert calls == [expected]


def test_an_interrupt_while_planning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C is no bug: a line, and the exit code that shells give."""

    def interrupted(*_: object, **__: object) -> Plan:
        raise KeyboardInterrupt

    monkeypatch.setattr(front, "current_plan", interrupted)
    assert front.run(["experiment=smoke"], ["--dry-run"]) == 130
    assert capsys.readouterr().err == (
        "error: interrupted while planning: run again, what was written is whole\n"
    )
