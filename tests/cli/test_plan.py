"""`kernelmill plan` lists tasks, variants and what was left out, and runs nothing."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.plan.identity import stage_builds
from tests.plan.project import Project, read_once


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project as the working directory; the pipeline's code is read once for all tests."""
    project = Project(tmp_path / "project")
    monkeypatch.setattr(stage_builds, "Code", read_once)
    monkeypatch.chdir(project.folder)
    return project


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What the command prints."""
    assert main(["plan", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_tasks_and_what_was_left_out(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A row per task with its variants; each rule with its count; each cell with its reason."""
    project.write(
        "conf/optimization/cpu_only.yaml", "{name: cpu_only, description: c, implementations: [cpp]}\n"
    )
    output = lines(capsys, "optimization=cpu_only", "hardware=cpu,h200")
    assert output[0].split() == [
        "kernel",
        "workload",
        "hardware",
        "optimization",
        "dtype",
        "variants",
        "space",
        "runs",
        "on",
    ]
    assert output[1].split()[:5] == ["scale", "small", "cpu", "cpu_only", "float32"]
    assert output[1].split()[-2:] == ["this", "machine"]
    (rule,) = [line for line in output if "scalar code is not unrolled" in line]
    assert rule.split()[:2] == ["4", "scale.cpp"]
    assert "  scale x small x h200 x cpu_only: no implementation runs on cuda (there is cpp)" in output
    assert output[-1].startswith("default: 2 tasks, ")
    assert output[-1].endswith(", 1 cells left out")
    assert not (project.folder / "artifacts" / "generate").exists()


def test_a_folder_that_cannot_be_written(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same plan; nothing is written."""
    expected = lines(capsys, "hardware=h200")
    shutil.rmtree(project.folder / "artifacts")
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    assert lines(capsys, "hardware=h200") == expected
    assert not (project.folder / "artifacts").exists()


@pytest.mark.slow
def test_several_optimizations(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Why a target has two tasks, and how to have one."""
    experiment = project.folder / "conf/experiment/default.yaml"
    experiment.write_text(experiment.read_text().replace("[full]", "[full, scalar]"))
    told = "default has several optimizations (full, scalar): optimization=NAME chooses one"
    assert lines(capsys, "hardware=cpu")[-1] == told
    assert told not in lines(capsys, "hardware=cpu", "optimization=full,scalar")


def test_variants(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Every variant with its identity and its values."""
    output = lines(capsys, "hardware=h200", "--variants")
    assert output[0] == "scale small h200 full"
    assert [line.split()[1:] for line in output[1:]] == [["triton", "num_warps=4"], ["triton", "num_warps=8"]]


def test_paths(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The files that can be asked for, in the order of the stages; shared ones once."""
    output = lines(capsys, "hardware=h100,h200", "--paths")
    assert [path.split("/")[1] for path in output] == [
        "generate", "compile", "verify", "profile", "mutate", "aggregate", "report", "track",
    ]  # fmt: skip


def test_json(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The same for programs."""
    (line,) = lines(capsys, "hardware=h200", "--json")
    listing = json.loads(line)
    (task,) = listing["plan"]["tasks"]
    generated = listing["generated"][task["row"]["generate"]]
    assert [variant["tunables"] for variant in generated["variants"]] == [{"num_warps": 4}, {"num_warps": 8}]


def test_a_mistake_is_one_line(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1."""
    assert main(["plan", "workload=smal"]) == 2
    expected = "error: workload=smal: unknown workload 'smal'; did you mean 'small'? (known: large, small)\n"
    assert capsys.readouterr().err == expected
