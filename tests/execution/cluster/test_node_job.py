"""A stage on a node: refused where the node is not what the plan says, and run as everywhere else."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.cpu import detection
from pipeline.backends.devices.cuda import Cuda
from pipeline.backends.devices.device import FoundDevice
from pipeline.execution.cluster import node_job
from pipeline.plan.identity import stage_builds
from pipeline.plan.local_machine import Machine
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from tests.plan.conftest import read_once
from tests.plan.project import CPU, MACHINE, Project

OTHER = msgspec.structs.replace(
    MACHINE,
    cpu=msgspec.structs.replace(CPU, architecture="x86-64-v4-node", facts={**CPU.facts, "cores": "64"}),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project, planned for this test's machine."""
    monkeypatch.setattr(stage_builds, "Code", read_once)
    return Project(tmp_path / "project")


@pytest.fixture
def check(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Machine], None]:
    """Check a stage's spec of a CPU task on some machine."""
    keys = project.keys("workload=small", "hardware=cpu")

    def on(stage: str, machine: Machine) -> None:
        monkeypatch.setattr(node_job, "read_machine", lambda: machine)
        monkeypatch.setattr(detection, "read_cpu", lambda: machine.cpu)
        node_job.check(stage, spec_path(project.store, stage, keys[stage]))

    return on


@pytest.mark.parametrize("stage", ["generate", "compile", "verify", "profile"])
def test_the_machine_of_the_plan(check: Callable[[str, Machine], None], stage: str) -> None:
    """Nothing to say against it."""
    check(stage, MACHINE)


def test_another_cpu(check: Callable[[str, Machine], None]) -> None:
    """Compiling needs no device; verifying and measuring do, and say which is here."""
    check("compile", OTHER)
    with pytest.raises(ConfigError, match="is a x86-64-v4-node, the plan was made for x86-64-v3-test: ask"):
        check("verify", OTHER)
    with pytest.raises(ConfigError) as caught:
        check("profile", OTHER)
    assert "is not the device that the plan names: here are no GPU, Test CPU, 64 cores" in str(caught.value)
    assert "`kernelmill nodes probe`" in str(caught.value)


def test_fewer_cores_are_another_device(check: Callable[[str, Machine], None]) -> None:
    """A job that got a part of the node may verify there, but not measure."""
    part = msgspec.structs.replace(CPU, facts={**CPU.facts, "threads": "1"})
    machine = msgspec.structs.replace(MACHINE, cpu=part)
    check("verify", machine)
    with pytest.raises(ConfigError, match="is not the device that the plan names"):
        check("profile", machine)


def test_other_tools(check: Callable[[str, Machine], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made would be kept under versions that did not make it."""
    here = node_job.library_versions("verify")
    monkeypatch.setattr(node_job, "library_versions", lambda stage: {**here, "numpy": "0.1"})
    with pytest.raises(ConfigError, match=r"has numpy 0\.1, the plan was made with .*: give all machines"):
        check("verify", MACHINE)


def test_no_gpu(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that asked for one and did not get it."""
    node = msgspec.structs.replace(MACHINE, devices=(FoundDevice("cuda", "sm_90", "NVIDIA H200"),))
    project.machine = msgspec.structs.replace(MACHINE, nodes={"h200": node})
    keys = project.keys("workload=small", "hardware=h200")
    path = spec_path(project.store, "verify", keys["verify"])
    monkeypatch.setattr(Cuda, "found", lambda self: ())
    with pytest.raises(ConfigError, match="has no sm_90 device, which the plan counts on: ask a node"):
        node_job.check("verify", path)
    monkeypatch.setattr(Cuda, "found", lambda self: node.devices)
    node_job.check("verify", path)
    monkeypatch.setattr(node_job, "read_machine", lambda: node)
    node_job.check("profile", spec_path(project.store, "profile", keys["profile"]))


def test_the_stage_runs_with_its_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its exit code and its messages are its own."""
    missing = str(tmp_path / "missing.json")
    assert node_job.main(["aggregate", "--spec", missing, "--out", missing, "--root", str(tmp_path)]) == 1
    assert f"error: {missing}: cannot be read as AggregateSpec" in capsys.readouterr().err
    assert node_job.main(["verify", "--spec", missing]) == 1
    assert f"error: {missing}: cannot be read as VerifySpec" in capsys.readouterr().err
    assert node_job.main([]) == 2
    assert "usage" in capsys.readouterr().err
