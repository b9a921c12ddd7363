"""A site's yaml: what ships is right, and a mistake is one line."""

from pathlib import Path

import msgspec
import pytest
import yaml

from pipeline.backends.devices.device import FoundDevice
from pipeline.execution.cluster.site import RESOURCES, Cluster, Placement, Site, read_site, to_site
from pipeline.plan.config.groups import options
from pipeline.plan.identity import stage_builds
from pipeline.records.errors import ConfigError
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from tests.paths import ROOT
from tests.plan.conftest import read_once
from tests.plan.project import MACHINE, Project

PROFILE = ROOT / "workflows" / "profiles" / "slurm"
LEAST = {"compile": {"cpus": 2, "minutes": 10}, "hardware": {}}


def site(**changes: object) -> Site:
    """The shortest site, with changes."""
    return to_site({**LEAST, **changes}, "site.yaml")


def test_the_profile_that_ships() -> None:
    """Its site is valid, its targets exist, and a CPU is measured on a node of its own."""
    found = read_site(PROFILE)
    assert set(found.hardware) <= set(options(ROOT / "conf", "hardware"))
    assert found.hardware["cpu"].exclusive
    assert "nodes probe" in (PROFILE / "site.yaml").read_text()


def test_beside_a_workflow_profile_the_default_one_does_not_apply() -> None:
    """So the Slurm profile repeats what the default one says, but for the one GPU of a single machine."""
    slurm, default = (
        yaml.safe_load((folder / "profile.yaml").read_text())
        for folder in (PROFILE, ROOT / "profiles" / "default")
    )
    assert default.pop("resources") == ["gpu=1"]
    assert "resources" not in slurm
    assert {key: slurm.get(key) for key in default} == default


def test_flags_of_a_placement() -> None:
    """As srun takes them; what is not said is left to the partition."""
    assert Placement(cpus=4, minutes=10).flags() == ["--cpus-per-task=4"]
    whole = Placement(
        cpus=8, minutes=5, memory_gib=64, partition="gpu", gres="gpu:h200:1", constraint="a&b", qos="q",
        exclusive=True, options="--nice=5",
    )  # fmt: skip
    assert whole.flags() == [
        "--partition=gpu", "--gres=gpu:h200:1", "--constraint=a&b", "--qos=q", "--mem=64G",
        "--cpus-per-task=8", "--exclusive", "--nice=5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"acount": "x"},
            "site.yaml: unknown key 'acount'; did you mean 'account'? "
            "(known: account, scratch, chain, compile, hardware)",
        ),
        ({"compile": {"cpus": 2}}, "site.yaml: missing key 'minutes' in compile (expected an integer)"),
        ({"compile": {"cpus": 0, "minutes": 1}}, "cpus: got 0, expected at least 1"),
        (
            {"hardware": {"h200": {"cpus": 1, "minutes": 1, "gres": "gpu=h200"}}},
            "gres: got 'gpu=h200', expected name:count or name:type:count",
        ),
        ({"hardware": {"h200": "gpu"}}, "site.yaml: hardware.h200: expected a mapping, got str 'gpu'"),
    ],
)
def test_a_mistake_names_the_key(changes: dict[str, object], text: str) -> None:
    """File, key, what was expected, what it got."""
    with pytest.raises(ConfigError) as caught:
        site(**changes)
    assert text in str(caught.value)


def test_a_profile_without_a_site(tmp_path: Path) -> None:
    """No file, no YAML, no key: each is told."""
    with pytest.raises(ConfigError, match="site.yaml: cannot be read: No such file"):
        read_site(tmp_path)
    (tmp_path / "site.yaml").write_text("site: [")
    with pytest.raises(ConfigError, match="site.yaml: not YAML"):
        read_site(tmp_path)
    (tmp_path / "site.yaml").write_text("account: x")
    with pytest.raises(ConfigError, match="missing key 'site'"):
        read_site(tmp_path)


CPU = Placement(cpus=8, minutes=120, partition="cpu", exclusive=True, memory_gib=2)
GPU = Placement(cpus=4, minutes=60, partition="gpu", gres="gpu:h200:1")
SITE = Site(
    account="team",
    compile=Placement(cpus=16, minutes=60, partition="short"),
    hardware={"cpu": CPU, "h200": GPU},
)
NODE = msgspec.structs.replace(MACHINE, devices=(FoundDevice("cuda", "sm_90", "NVIDIA H200"),))


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
    """A target of the site whose node was never probed is reported."""
    more = {**SITE.hardware, "h100": GPU}
    cluster = Cluster(msgspec.structs.replace(SITE, hardware=more), project.store)
    cluster.check(plan)
    assert cluster.unknown(plan) == ("h100",)
