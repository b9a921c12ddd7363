"""Runs on a real Slurm: a local run's results, nothing lost by kills, each job where it belongs."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.backends.devices import device_lock
from tests.end_to_end.checkout import Checkout
from tests.execution.cluster import slurm as installation
from tests.execution.cluster.slurm import CPUS, Slurm
from tests.nvml_stand_in import StandIn

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

PROFILE = "workflows/profiles/slurm"
PATIENCE = 500.0  # seconds; on a quiet machine all of it takes three minutes
SITE = """\
site:
  scratch: $KERNELMILL_TEST_SCRATCH
  compile: {{cpus: {cpus}, minutes: 20}}
  hardware:
    cpu: {{partition: main, cpus: {cpus}, minutes: 30, exclusive: true}}
    h200: {{partition: gpu, gres: "gpu:h200:1", cpus: 1, minutes: 20}}
"""
TOY = "slurm-status-command: squeue\n"  # it has no accounting
SEVERAL = (
    "overrides=kernel=rms_norm workload=awkward hardware=cpu optimization=essential "
    "verify=fast profile=quick profile.baselines=[eager] tracking=disabled"
)
SWEEP = (
    *("sweep", "hydra.launcher.profile=slurm", "hydra.sweep.dir=sweep", "kernel=softmax,rms_norm"),
    *("workload=awkward", "hardware=cpu", "optimization=baseline"),
    *("verify=fast", "profile=quick", "profile.baselines=[eager]", "tracking=disabled"),
)


class Site(Checkout):
    """A checkout on the cluster's shared file system, with its profile."""

    patience = PATIENCE
    imported_before = False  # Snakemake looks for executor plugins when it is imported
    prepared = False

    def __init__(self, folder: Path, cluster: Slurm, plugin: Path | None) -> None:
        super().__init__(folder)
        self.scratch = folder.parent / f"scratch-{folder.name}"
        self.scratch.mkdir()
        paths = [str(folder), *([str(plugin)] if plugin else []), os.environ.get("PYTHONPATH", "")]
        self.environment |= {
            "PATH": cluster.path,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "KERNELMILL_TEST_SCRATCH": str(self.scratch),
        }
        (folder / PROFILE / "site.yaml").write_text(SITE.format(cpus=CPUS))
        profile = folder / PROFILE / "profile.yaml"
        text = profile.read_text()
        for name in ("slurm-init-seconds-before-status-checks", "seconds-between-status-checks"):
            assert f"{name}: 10" in text
            text = text.replace(f"{name}: 10", f"{name}: 1")
        profile.write_text(text + TOY)

    def _ended(self, command: list[str], *, check: bool, seconds: float) -> str:
        return super()._ended(command, check=check, seconds=self.patience)

    def command(self, *arguments: str) -> list[str]:
        """The command line of Snakemake with the profile."""
        return [sys.executable, "-m", "snakemake", "--profile", PROFILE, *arguments]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Slurm, running until the last test of this module."""
    reason = installation.missing()
    if reason:
        pytest.skip(reason)
    running = Slurm(tmp_path_factory.mktemp("slurm"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Where the executor plugin was installed for these tests; None where it is part of the environment."""
    found = installation.plugin_path(tmp_path_factory.mktemp("plugin"))
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def site(tmp_path: Path, cluster: Slurm, plugin: Path | None) -> Iterator[Site]:
    """A checkout on the cluster; none of its jobs is left to the next test."""
    made = Site(tmp_path / "project", cluster, plugin)
    yield made
    for job in cluster.jobs():
        cluster("scancel", job, check=False)
    until(lambda: not cluster.jobs("RUNNING,PENDING,COMPLETING"), 30)


def verdicts(checkout: Checkout, stage: str) -> dict[str, str]:
    """Task and variant -> how it ended."""
    found = {}
    for path in (checkout.folder / "artifacts" / stage).glob("*/round*.json"):
        for record in json.loads(path.read_text())["records"]:
            name = f"{path.parent.name} {json.dumps(record['variant'], sort_keys=True)}"
            found[name] = str(record["result"].get("outcome", "passed"))
    return found


def timed(checkout: Checkout) -> set[str]:
    """The variants that were on a device."""
    return {
        name for name, outcome in verdicts(checkout, "profile").items() if outcome != "device_unavailable"
    }


def assert_whole(site: Site) -> None:
    """Every variant of the one task went all the way."""
    assert set(verdicts(site, "verify").values()) == {"passed"}
    assert len(timed(site)) == len(verdicts(site, "compile")) > 3


def until(ready: Callable[[], object], seconds: float, run: subprocess.Popen[str] | None = None) -> None:
    """Wait; a run that ends too soon shows what it said."""
    deadline = time.monotonic() + seconds
    while not ready():
        assert run is None or run.poll() is None, run.communicate()[0]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def workers_in_jobs() -> list[int]:
    """Warm workers that were started inside of a Slurm job, wherever they are now."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if b"pipeline.execution.workers.zygote" in command and b"SLURM_JOB_ID" in environment:
            found.append(int(process.name))
    return found


def test_smoke_is_as_at_home(site: Site, cluster: Slurm, tmp_path: Path) -> None:
    """The verdicts of a local run, from both front doors; then nothing is to be done; no worker is left."""
    before = site.scratch.stat().st_mtime_ns
    output = site.module("pipeline", "run", "experiment=smoke", "--", "--profile", PROFILE)
    assert re.search(r"smoke: 6 tasks, (\d+) variants · \1 compiled, \1 verified, 3 measured", output), output
    assert site.scratch.stat().st_mtime_ns > before, "no job used the node's scratch"
    assert {path.name for path in site.scratch.iterdir()} <= {device_lock.FOLDER}, "a job left files behind"
    assert workers_in_jobs() == []

    local = Checkout(tmp_path / "local")
    local.module("pipeline", "run", "experiment=smoke", "tracking=disabled", "--", "profile")
    for stage in ("compile", "verify"):
        assert verdicts(site, stage) == verdicts(local, stage)
        assert set(verdicts(site, stage).values()) == {"passed"}
    # How a time comes out depends on the machine's load; which variants were timed does not.
    assert timed(site) == timed(local)

    assert "Nothing to be done" in site.snakemake("--config", "overrides=experiment=smoke")
    assert "Nothing to be done" in site.snakemake(
        "--workflow-profile", PROFILE, "--config", "experiment=smoke"
    )


def test_a_node_fails_and_comes_back(site: Site, cluster: Slurm) -> None:
    """Slurm puts the job back, the run waits and ends well; what was finished before is kept."""
    run = site.start("profile", "--config", SEVERAL)
    until(lambda: len(site.entries("verify")) >= 3, PATIENCE, run)
    finished = site.entries("verify")
    (job,) = cluster.jobs("RUNNING")
    cluster("scontrol", "update", f"NodeName={cluster.node}", "State=DOWN", "Reason=test")
    until(lambda: cluster.described(job)["JobState"] != "RUNNING", 30, run)
    cluster("scontrol", "update", f"NodeName={cluster.node}", "State=RESUME")
    assert cluster.described(job)["Restarts"] == "1"
    output = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 0, output
    assert all(site.entries("verify").get(entry) == time for entry, time in finished.items())
    assert_whole(site)


def test_cancelled_and_killed(site: Site, cluster: Slurm) -> None:
    """A cancelled job is told with its log; also after kill -9 of Snakemake the next run completes."""
    run = site.start("profile", "--config", SEVERAL)
    until(lambda: len(site.entries("compile")) >= 3, PATIENCE, run)
    finished = site.entries("compile")
    (job,) = cluster.jobs("RUNNING")
    cluster("scancel", job)
    output = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 1, output
    (log,) = set(re.findall(rf"log: (\S+/{job}\.log) ", output))
    assert "CANCELLED" in Path(log).read_text()

    run = site.start("profile", "--config", SEVERAL)
    until(lambda: len(site.entries("verify")) >= 3, PATIENCE, run)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    finished |= site.entries("verify")
    site.snakemake("profile", "--config", SEVERAL)
    after = site.entries("compile") | site.entries("verify")
    assert all(after.get(entry) == time for entry, time in finished.items())
    assert_whole(site)
    assert "Nothing to be done" in site.snakemake("profile", "--config", SEVERAL)


def test_a_multirun(site: Site, cluster: Slurm) -> None:
    """A sweep's jobs through Slurm: the one that no compiler takes has its reason, the other its number."""
    with (site.folder / "kernels/rms_norm/rms_norm.cpp").open("a") as stream:
        stream.write("\n#error broken on purpose\n")
    before = set(cluster.jobs("all"))
    output = site.module("pipeline", *SWEEP)
    lines = output.splitlines()
    at = lines.index("job  time (minimize)  overrides")
    assert re.match(r"  0 +[\d.]+ .s  kernel=softmax$", lines[at + 1])
    assert lines[at + 2].startswith("  1 ") and lines[at + 2].endswith(
        "(rms_norm x awkward x cpu: 1 compile error)"
    )
    states = {cluster.described(job)["JobState"] for job in set(cluster.jobs("all")) - before}
    assert len(set(cluster.jobs("all")) - before) == 2 and states == {"COMPLETED"}
    assert json.loads((site.folder / "sweep/0/job.json").read_text())["result"]["value"] > 0
    assert "Nothing to be done" in site.module("pipeline", *SWEEP)


def test_a_gpu_job_asks_for_its_gpu(site: Site, cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with an H200 is asked what it is; its target's jobs go there, and refuse where it is not."""
    chosen = "overrides=kernel=softmax workload=awkward hardware=h200 optimization=defaults verify=fast"
    StandIn(cluster.gpu, monkeypatch)
    output = site.module("pipeline", "nodes", "probe", "h200")
    assert "\nh200: NVIDIA H200 (sm_90), " in output
    assert "a node" in site.module("pipeline", "plan", *chosen.removeprefix("overrides=").split())

    before = set(cluster.jobs("all"))
    site.snakemake("compile", "--config", chosen)
    (job,) = set(cluster.jobs("all")) - before
    found = cluster.described(job)
    assert (found["Partition"], found["JobState"]) == ("gpu", "COMPLETED")
    assert found["TresPerNode"].endswith("gpu:h200:1")

    (cluster.gpu / "libnvidia-ml.so.1").unlink()
    output = site.snakemake("verify", "--config", chosen, check=False)
    logs = "".join(path.read_text() for path in (site.folder / "artifacts/logs/verify").rglob("*.log"))
    assert "has no sm_90 device, which the plan counts on: ask a node of this target" in logs
    assert "artifacts/logs/verify" in output
    refused = site.module("pipeline", "run", *chosen.removeprefix("overrides=").split(), check=False)
    assert "hardware 'h200' is measured on a node of the cluster, which this machine is not" in refused


def test_a_probe_that_finds_another_device(site: Site, cluster: Slurm) -> None:
    """Without its GPU the node is no h200: it is not kept, and the message says where to look."""
    output = site.module("pipeline", "nodes", "probe", "h200", check=False)
    assert "the node that the site's options lead to has another device (no GPU, " in output
    assert site.module("pipeline", "nodes", "list") == "no node was asked yet: kernelmill nodes probe\n"
