"""Before a run, and before a stage of a job: is what the plan counts on here?"""

import os
import tempfile
from pathlib import Path

import msgspec
import pytest

from pipeline.execution import workflow
from pipeline.execution.cluster.site import Cluster, Placement, Site
from pipeline.execution.workflow import begin_job, check_run
from pipeline.plan.cluster_nodes import Node, write_node
from pipeline.plan.identity import stage_builds
from pipeline.records import environment
from pipeline.records.errors import ConfigError
from tests.plan.conftest import read_once
from tests.plan.project import CPU, MACHINE, Project

SITE = Site(compile=Placement(cpus=1, minutes=1), hardware={"cpu": Placement(cpus=1, minutes=1)})
OTHER = msgspec.structs.replace(MACHINE, cpu=msgspec.structs.replace(CPU, facts={**CPU.facts, "cores": "64"}))
NODE = Node(hardware="cpu", machine=OTHER, host="h", created="2026-01-01T00:00:00+00:00")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose CPU is that of a node; this machine is another one."""
    monkeypatch.setattr(stage_builds, "Code", read_once)
    made = Project(tmp_path / "project")
    write_node(made.store, NODE)
    made.machine = msgspec.structs.replace(MACHINE, nodes={"cpu": OTHER})
    monkeypatch.setattr(workflow, "read_machine", lambda: MACHINE)
    return made


def test_a_nodes_target_is_not_measured_elsewhere(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the profile the run is refused, but on a machine of the same kind, or for other targets."""
    plan = project.plan("workload=small", "hardware=cpu")
    with pytest.raises(ConfigError) as caught:
        check_run(plan, None, project.store)
    assert "hardware 'cpu' is measured on a node of the cluster, which this machine is not" in str(
        caught.value
    )
    assert "`kernelmill nodes forget cpu`" in str(caught.value)
    check_run(plan, Cluster(SITE, project.store), project.store)
    check_run(project.plan("workload=small", "hardware=h200"), None, project.store)
    monkeypatch.setattr(workflow, "read_machine", lambda: OTHER)
    check_run(plan, None, project.store)


def test_a_target_that_was_never_asked_is_told(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """It is compiled for all the same."""
    site = msgspec.structs.replace(SITE, hardware={**SITE.hardware, "h200": Placement(cpus=1, minutes=1)})
    check_run(project.plan("workload=small", "hardware=h200"), Cluster(site, project.store), project.store)
    assert "h200: no node of it was asked what it is" in capsys.readouterr().err


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a job of Slurm; what a job changes is put back."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_TMPDIR", "")
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    monkeypatch.setenv(environment.ON_NODE, "")
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.mark.usefixtures("job")
def test_a_job_has_its_nodes_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files lie there from now on, and no warm worker is used."""
    monkeypatch.setenv("SLURM_TMPDIR", str(tmp_path))
    begin_job(msgspec.structs.replace(SITE, scratch="$SLURM_TMPDIR"))
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(tmp_path)
    assert os.environ[environment.ON_NODE] == "1"


@pytest.mark.usefixtures("job")
def test_scratch_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that the site does not set, or a folder that it does not make, is an error of the job."""
    monkeypatch.delenv("SLURM_TMPDIR")
    with pytest.raises(ConfigError, match=r"scratch: \$SLURM_TMPDIR: no such folder on this node"):
        begin_job(msgspec.structs.replace(SITE, scratch="$SLURM_TMPDIR"))


def test_nothing_changes_outside_of_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a local run keep their worker and their folder."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.delenv(environment.ON_NODE, raising=False)
    begin_job(msgspec.structs.replace(SITE, scratch=str(tmp_path)))
    assert environment.ON_NODE not in os.environ
    assert tempfile.gettempdir() != str(tmp_path)
