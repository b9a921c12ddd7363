"""Where jobs go: by target and stage, and for no longer than their settings allow."""

from pathlib import Path

import msgspec
import pytest

from pipeline.execution.cluster.placement import RESOURCES, Cluster
from pipeline.execution.cluster.site import Placement, Site
from pipeline.plan.identity import stage_builds
from pipeline.records.errors import ConfigError
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from tests.plan.conftest import read_once
from tests.plan.project import MACHINE, Project

CPU = Placement(cpus=8, minutes=120, partition="cpu", exclusive=True, memory_gib=2)
GPU = Placement(cpus=4, minutes=60, partition="gpu", gres="gpu:h200:1")
SITE = Site(
    account="team",
    compile=Placement(cpus=16, minutes=60, partition="short"),
    hardware={"cpu": CPU, "h200": GPU},
)
NODE = msgspec.structs.replace(MACHINE, gpu=("cuda", "sm_90", "NVIDIA H200"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """On a login node: the H200 is on another one."""
    monkeypatch.setattr(stage_builds, "Code", read_once)
    made = Project(tmp_path / "project")
    made.machine = msgspec.structs.replace(MACHINE, nodes={"h200": NODE})
    return made


@pytest.fixture
def plan(project: Project) -> Plan:
    """A kernel on the CPU, on the H200 of a node, on an absent H100."""
    return project.plan("workload=small", "hardware=cpu,h100,h200")


def on(plan: Plan, hardware: str) -> PlannedTask:
    """Its task there."""
    (task,) = [task for task in plan.tasks if task.row.hardware == hardware]
    return task


def test_a_node_of_the_cluster_counts_as_present(plan: Plan) -> None:
    """Only the target that the node is: an H100 of the same architecture is absent."""
    present = {task.row.hardware: task.row.device_present for task in plan.tasks}
    assert present == {"cpu": True, "h100": False, "h200": True}


def test_a_chain_is_one_job_on_the_node_that_measures(project: Project, plan: Plan) -> None:
    """Its three stages ask for the same node, and their times add up to no more than the site allows."""
    cluster = Cluster(SITE, project.store)
    assert cluster.chains
    for hardware, placement in SITE.hardware.items():
        asked = [cluster.requests(stage, on(plan, hardware)) for stage in ("compile", "verify", "profile")]
        assert all(tuple(each) == RESOURCES for each in asked)
        times = [each.pop("runtime") for each in asked]
        assert asked[0] == asked[1] == asked[2]
        assert asked[0]["slurm_partition"] == placement.partition
        assert asked[0]["cpus_per_task"] == placement.cpus
        assert 3 <= sum(times) <= placement.minutes  # type: ignore[arg-type]
    cpu, gpu = (cluster.requests("profile", on(plan, name)) for name in ("cpu", "h200"))
    assert (cpu["slurm_extra"], cpu["gres"], cpu["mem_mb"]) == ("--exclusive", None, 2048)
    assert (gpu["slurm_extra"], gpu["gres"], gpu["mem_mb"]) == (None, "gpu:h200:1", 0)
    assert cpu["slurm_account"] == gpu["slurm_account"] == "team"


def test_without_chains_compiling_holds_no_device(project: Project, plan: Plan) -> None:
    """It goes where it needs no device, and takes the cores that it can use."""
    cluster = Cluster(msgspec.structs.replace(SITE, chain=False), project.store)
    task = on(plan, "h200")
    compiling = cluster.requests("compile", task)
    assert (compiling["slurm_partition"], compiling["gres"]) == ("short", None)
    assert compiling["cpus_per_task"] == min(16, task.proposed) == cluster.threads("compile", task)
    assert cluster.requests("profile", task)["gres"] == "gpu:h200:1"


def test_what_is_absent_needs_no_device(project: Project, plan: Plan) -> None:
    """Verified by the interpreter; mutation, which has no task, goes there as well, for as long as it may."""
    cluster = Cluster(SITE, project.store)
    for stage in ("compile", "verify", "profile"):
        asked = cluster.requests(stage, on(plan, "h100"))
        assert (asked["slurm_partition"], asked["gres"]) == ("short", None)
    mutation = cluster.requests("mutate", None)
    assert (mutation["slurm_partition"], mutation["runtime"]) == ("short", 60)


def test_a_measurement_of_the_cpu_has_all_its_cores(project: Project, plan: Plan) -> None:
    """Other jobs take one for each variant, at most what the site gives."""
    cluster = Cluster(SITE, project.store)
    assert cluster.threads("profile", on(plan, "cpu")) == 8
    assert cluster.threads("verify", on(plan, "cpu")) == min(8, on(plan, "cpu").proposed)
    assert cluster.cores == 16


def test_time_follows_the_settings(project: Project) -> None:
    """More variants or a longer limit of each: a longer job, up to the site's limit."""
    cluster = Cluster(msgspec.structs.replace(SITE, chain=False), project.store)

    def minutes(*lines: str) -> int:
        task = project.task("workload=small", "hardware=cpu", *lines)
        found = cluster.requests("profile", task)["runtime"]
        assert isinstance(found, int)
        return found

    short = minutes("profile=quick", "optimization=scalar")
    assert short < minutes("profile=quick", "optimization=scalar", "profile.time_limit=600")
    assert short < minutes("profile=quick", "optimization=scalar", "profile.processes_at_most=40")
    assert short < minutes("profile=quick", "optimization=full")
    assert minutes("profile.time_limit=100000") == CPU.minutes


def test_a_present_device_without_a_place(project: Project, plan: Plan) -> None:
    """The error names the key to add."""
    cluster = Cluster(msgspec.structs.replace(SITE, hardware={"cpu": CPU}), project.store)
    with pytest.raises(ConfigError) as caught:
        cluster.check(plan)
    assert "hardware 'h200': the site does not say where it is measured" in str(caught.value)
    assert "add site.hardware.h200 to the profile's site.yaml (it has: cpu)" in str(caught.value)


def test_a_place_without_a_device(project: Project, plan: Plan) -> None:
    """A target of the site whose node was never asked is told."""
    more = {**SITE.hardware, "h100": GPU}
    cluster = Cluster(msgspec.structs.replace(SITE, hardware=more), project.store)
    cluster.check(plan)
    assert cluster.unknown(plan) == ("h100",)
