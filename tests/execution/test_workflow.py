"""The Snakefile: lint, dry runs, targets by name, one plan for both front doors, one run at a time."""

import errno
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from pipeline.execution.cluster.site import Cluster, Placement, Site
from pipeline.execution.snakemake_internals import only_progress
from pipeline.execution.workflow import INTERRUPTED, Workflow, jobs_of, open_workflow, overrides_of, site_of
from pipeline.plan.config.groups import options
from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import TaskRow
from pipeline.store import run_lock
from pipeline.store.run_lock import take_lock
from tests import warm_commands
from tests.end_to_end.checkout import Checkout
from tests.paths import ROOT
from tests.selection import slow_unless

STAGES = ("generate", "compile", "verify", "profile")
ROW = TaskRow(
    task="t",
    kernel="softmax",
    workload="w",
    hardware="cpu",
    kind="cpu",
    device_present=True,
    optimization="full",
    search="grid",
    rounds=2,
    dtype="float32",
    dimensions={"rows": 1},
    flops=1.0,
    bytes=1.0,
    unit="vector",
    peaks={},
    generate="g-1",
    compile="c-1",
    verify="v-1",
    profile="p-1",
)


def workflow(**changes: object) -> Workflow:
    """A plan of one task."""
    row = msgspec.structs.replace(ROW, **changes)
    task = PlannedTask(row=row, variants={"cpp": 30}, proposed=12)
    return Workflow(Plan(experiment="e", tasks=(task,), pruned=(), aggregate="e-9"))


def wildcards(key: str, number: int = 0) -> SimpleNamespace:
    """As Snakemake passes them."""
    return SimpleNamespace(key=key, round=str(number))


class _Plain(Checkout):
    prepared = False  # which takes longer than all that it would save here: nothing is judged or tracked


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One private copy for the tests that only look or generate."""
    return _Plain(tmp_path_factory.mktemp("workflow") / "project")


def run(checkout: Checkout, *command: str) -> subprocess.CompletedProcess[str]:
    """A Python module's command line in the checkout."""
    return warm_commands.run(["-m", *command], cwd=checkout.folder, env=checkout.environment)


@pytest.mark.parametrize("name", slow_unless("default".__eq__, options(ROOT / "conf", "experiment")))
def test_every_experiment_dry_runs(checkout: Checkout, name: str) -> None:
    """The DAG of each experiment: the four stages, whose jobs tasks may share, and the closing ones."""
    ended = run(checkout, "snakemake", "-n", "--quiet", "rules", "--config", f"experiment={name}")
    assert ended.returncode == 0, ended.stderr
    counts = {}
    for line in ended.stdout.splitlines():
        name, _, count = line.strip().rpartition(" ")
        if count.isdigit():
            counts[name.strip()] = int(count)
    assert counts["aggregate"] == counts["report"] == counts["track"] == 1
    jobs = [counts[f"{stage}_variants"] for stage in STAGES]
    assert jobs == sorted(jobs), "a stage has at least as many jobs as the one before it"
    assert not (checkout.folder / "artifacts" / "store").exists()


@pytest.mark.slow
def test_both_front_doors_have_one_plan(checkout: Checkout) -> None:
    """After one of them, the other one has nothing to do; and the other way round.

    Snakemake shows its steps and the stages' lines, and no job descriptions.
    """
    lines = ["kernel=softmax", "workload=awkward", "hardware=cpu", "optimization=baseline"]
    first = run(checkout, "pipeline", "run", *lines, "--", "generate")
    assert first.returncode == 0, first.stderr
    assert "generate softmax awkward cpu: 1 variant" in first.stderr
    second = checkout.snakemake("generate", "--config", f"overrides={' '.join(lines)}")
    assert "Nothing to be done" in second

    lines[1] = "workload=bert_base"
    output = checkout.snakemake("generate", "--config", f"overrides={' '.join(lines)}")
    assert "generate softmax: 1 variant" in output
    assert "1 of 2 steps (50%) done" in output
    assert not [noise for noise in ("jobid", "wildcards", "Select jobs", "rule generate") if noise in output]
    third = run(checkout, "pipeline", "run", *lines, "--", "generate")
    assert third.returncode == 0
    assert "Nothing to be done" in third.stderr


@pytest.mark.slow
def test_a_file_of_another_plan_is_not_made(checkout: Checkout) -> None:
    """A key stands for its inputs: what is not in the plan cannot be made, and the message says so."""
    ended = run(checkout, "snakemake", "--cores", "1", "artifacts/verify/softmax-0/round0.json")
    assert ended.returncode == 1
    assert "artifacts/verify/softmax-0/round0.json: no task of this plan makes it" in ended.stderr


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            ["pipeline", "run", "kernel=nope"],
            "error: kernel=nope: unknown kernel 'nope' (known: ",
        ),
        (
            ["snakemake", "--cores", "1", "--config", "overrides=kernel=nope"],
            "error: kernel=nope: unknown kernel 'nope' (known: ",
        ),
        (
            ["snakemake", "--cores", "1", "--config", "experimnt=x"],
            "error: --config experimnt=…: unknown key; did you mean 'experiment'? "
            "(known: experiment, overrides, sweep, store)",
        ),
    ],
)
def test_a_mistake_is_one_line(checkout: Checkout, command: list[str], text: str) -> None:
    """No traceback; exit code 2 of the command, 1 of Snakemake."""
    ended = run(checkout, *command)
    assert ended.returncode == (2 if command[0] == "pipeline" else 1)
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("Using workflow specific")]
    assert len(lines) == 1
    assert lines[0].startswith(text)


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ({}, ()),
        ({"experiment": "smoke"}, ("experiment=smoke",)),
        ({"overrides": "kernel=a,b workload=w"}, ("kernel=a,b", "workload=w")),
        ({"overrides": "search.description='two words'"}, ("search.description=two words",)),
        ({"overrides": ["kernel=a"], "experiment": "smoke"}, ("experiment=smoke", "kernel=a")),
    ],
)
def test_snakemake_config(config: dict[str, object], lines: tuple[str, ...]) -> None:
    """A string is split as a shell does, a list is taken as it is."""
    assert overrides_of(config) == lines


def test_snakemake_config_of_another_kind() -> None:
    """Anything else is an error."""
    with pytest.raises(ConfigError, match="expected 'group=option …', got 3"):
        overrides_of({"overrides": 3})


def test_snakemake_config_of_a_sweep(tmp_path: Path) -> None:
    """A file has the jobs; beside it stands only where they run and what they share."""
    file = tmp_path / "sweep.json"
    file.write_text('{"jobs": [["kernel=a"], ["kernel=b", "workload=w"]]}')
    assert jobs_of({"sweep": str(file)}) == (("kernel=a",), ("kernel=b", "workload=w"))
    assert jobs_of({"overrides": "kernel=a"}) == (("kernel=a",),)
    both = {"sweep": str(file), "site": {"compile": {}}, "store": "/shared"}
    assert jobs_of(both) == (("kernel=a",), ("kernel=b", "workload=w"))
    with pytest.raises(ConfigError, match=r"sweep=… overrides=…: a sweep's file says all"):
        jobs_of({"sweep": str(file), "overrides": "kernel=a"})
    file.write_text('{"job": []}')
    with pytest.raises(StoreError, match=r"sweep.json: cannot be read as Sweep"):
        jobs_of({"sweep": str(file)})


def test_files_of_a_chain() -> None:
    """Each rule finds its inputs by key and round."""
    files = workflow()
    assert files.outputs("verify") == ["artifacts/verify/v-1/round0.json", "artifacts/verify/v-1/round1.json"]
    assert files.inputs("compile")["variants"](wildcards("c-1", 1)) == ["artifacts/generate/g-1/round1.json"]
    assert files.inputs("verify")["compiled"](wildcards("v-1")) == ["artifacts/compile/c-1/round0.json"]
    assert files.inputs("profile")["compiled"](wildcards("p-1")) == ["artifacts/compile/c-1/round0.json"]
    assert files.inputs("profile")["verified"](wildcards("p-1")) == ["artifacts/verify/v-1/round0.json"]
    history = files.inputs("generate")["history"]
    assert history(wildcards("g-1", 0)) == []
    assert history(wildcards("g-1", 1)) == [
        "artifacts/compile/c-1/round0.json",
        "artifacts/verify/v-1/round0.json",
        "artifacts/profile/p-1/round0.json",
    ]


def test_who_runs_beside_whom() -> None:
    """Compiles take what they can use, a measurement on the CPU takes all, one on the GPU takes the GPU."""
    cpu = workflow()
    assert cpu.threads("compile")(wildcards("c-1")) == cpu.threads("verify")(wildcards("v-1")) == 12
    assert device_of(cpu) == (os.cpu_count(), 0)
    assert (cpu.threads("generate"), cpu.threads("mutate")) == (1, os.cpu_count())
    gpu = workflow(kind="cuda")
    assert device_of(gpu) == (1, 1)
    absent = workflow(kind="cuda", device_present=False)
    assert device_of(absent) == (1, 0)


def device_of(files: Workflow) -> tuple[int, int]:
    """Cores and GPUs that a measurement holds."""
    job = wildcards("p-1")
    held = files.resources("profile")["gpu"](job)
    # Nothing is verified where another job measures.
    assert files.resources("verify")["gpu"](wildcards("v-1")) == held
    assert "gpu" not in files.resources("compile")
    return files.threads("profile")(job), held


def test_the_lock_is_free_after_a_kill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While it is held the next one waits and names the holder; kill -9 releases it."""
    path = tmp_path / ".lock"
    program = (
        "import sys, time; from pathlib import Path; from pipeline.store.run_lock import take_lock\n"
        "held = take_lock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, cwd=ROOT)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    waiting = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert waiting.stderr is not None and waiting.stdout is not None
    message = waiting.stderr.readline().decode()
    assert message == f"waiting for another run in this checkout (process {holder.pid}) …\n"
    holder.send_signal(signal.SIGKILL)
    assert waiting.stdout.readline() == b"held\n"
    for process in (holder, waiting):
        process.kill()
        process.communicate()
    take_lock(path).close()
    assert capsys.readouterr().err == ""


def test_who_waits_for_the_lock_says_so_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long it has waited, and for which command; of a stranger's process only the number."""
    monkeypatch.setattr(run_lock, "SAY_SECONDS", 0.2)
    path = tmp_path / "kernelmill"
    path.write_text(
        "import sys, time; from pathlib import Path; from pipeline.store.run_lock import take_lock\n"
        "held = take_lock(Path(sys.argv[2])); print('held', flush=True); sys.stdin.read()"
    )
    lock = tmp_path / ".lock"
    holder = subprocess.Popen(
        [sys.executable, str(path), "run", str(lock)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    threading.Timer(1.0, holder.stdin.close).start()
    take_lock(lock).close()
    holder.wait()
    first, second, *_ = capsys.readouterr().err.splitlines()
    named = f"another run in this checkout (process {holder.pid}: "
    assert first.startswith(f"waiting for {named}kernelmill run ")
    assert second.startswith(f"waited 0 s for {named}")
    holder.stdout.close()


def test_progress_filter() -> None:
    """What a user does not need is dropped from the terminal's handler; failures stay."""
    handler = logging.StreamHandler()
    handler.name = "DefaultStreamHandler"
    logger = logging.getLogger("snakemake.test")
    logger.addHandler(handler)
    try:
        only_progress()
    finally:
        logger.removeHandler(handler)

    def shown(message: str, event: str | None = None) -> bool:
        record = logging.makeLogRecord({"msg": message, "event": event})
        return bool(handler.filter(record))

    assert shown("1 of 2 steps (50%) done", "progress")
    assert shown("Error in rule verify", "job_error")
    assert shown("Nothing to be done (all requested files are present and up to date).")
    assert not shown("rule verify_variants:", "job_info")
    assert not shown("Select jobs to execute...")


def test_the_conda_environment_has_what_the_project_needs() -> None:
    """Whoever lets Snakemake deploy software gets the distributions that pyproject.toml asks for."""
    import re
    import tomllib

    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    given = (ROOT / "workflows" / "envs" / "kernelmill.yaml").read_text()
    runs_in_the_main_process = {"snakemake"}
    for requirement in wanted:
        match = re.match(r"[\w.-]+", requirement)
        assert match is not None
        if match[0] not in runs_in_the_main_process:
            assert re.search(rf"^\s*- {re.escape(match[0])}[ ><=]", given, re.MULTILINE), match[0]


def test_on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs say where they go, a chain is one job, and no GPU is counted: the cluster hands them out."""
    site = Site(
        compile=Placement(cpus=4, minutes=10),
        hardware={"cpu": Placement(cpus=8, minutes=10, exclusive=True)},
    )
    cluster = Cluster(site, Path("artifacts"))
    monkeypatch.setattr(Cluster, "seconds_per_variant", lambda *_: 1.0)
    files = Workflow(workflow().plan, cluster=cluster)
    asked = files.on_cluster("profile")
    assert asked["slurm_extra"](wildcards("p-1")) == "--exclusive"
    assert asked["cpus_per_task"](wildcards("p-1")) == files.threads("profile")(wildcards("p-1")) == 8
    assert files.on_cluster("mutate")["cpus_per_task"](wildcards("m-1")) == files.cores == 4
    groups = [files.chain(stage) for stage in ("compile", "verify", "profile")]
    names = [
        group(wildcards(key, 1)) for group, key in zip(groups, ("c-1", "v-1", "p-1"), strict=True) if group
    ]
    assert names == ["p-1-round1"] * 3
    assert device_of(Workflow(workflow(kind="cuda").plan, cluster=cluster))[1] == 0
    alone = Cluster(msgspec.structs.replace(site, chain=False), Path("artifacts"))
    assert Workflow(workflow().plan, cluster=alone).chain("verify") is None
    assert workflow().on_cluster("verify") == {}
    assert workflow().chain("verify") is None


def test_the_site_of_a_profile() -> None:
    """It is no key for users, and it is checked."""
    plain = {"site": {"compile": {"cpus": 1, "minutes": 1}, "hardware": {}}}
    assert overrides_of({**plain, "experiment": "smoke"}) == ("experiment=smoke",)
    assert site_of({}) is None
    assert site_of(plain) == Site(compile=Placement(cpus=1, minutes=1), hardware={})
    with pytest.raises(ConfigError, match=r"--config site: missing key 'compile'"):
        site_of({"site": {"hardware": {}}})


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file and the page."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(
        StoreError, match="lock: the file system does not lock files .Function not implemented.*cluster"
    ):
        take_lock(tmp_path / "lock")


@pytest.mark.slow
def test_nothing_to_do_imports_neither_hydra_nor_pandas(checkout: Checkout) -> None:
    """A kept plan needs no Hydra; a rule with `params` would have Snakemake import pandas for each run."""
    command = ("snakemake", "--cores", "1", "generate", "--config", "experiment=smoke")
    assert run(checkout, *command).returncode == 0
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", *command],
        cwd=checkout.folder,
        env=checkout.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Nothing to be done" in ended.stderr
    imported = {line.rpartition(" ")[2] for line in ended.stderr.splitlines() if line.startswith("import ")}
    assert "snakemake.dag" in imported
    assert not {"hydra.compose", "omegaconf.omegaconf", "grimp", "torch._C"} & imported
    for rules in (ROOT / "workflows" / "rules").glob("*.smk"):
        assert "params:" not in rules.read_text(), rules


def test_the_warm_worker_starts_where_there_is_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A new plan, or one whose report is not there; and who only looks needs no worker."""
    from pipeline.execution import workflow as opened

    began: list[tuple[str, ...]] = []
    plan = workflow().plan

    def find(jobs: tuple[tuple[str, ...], ...], *, before_making: object = None, **_: object) -> Plan:
        if new and callable(before_making):
            before_making()
        return plan

    monkeypatch.setattr(opened, "plan_of_jobs", find)
    monkeypatch.setattr(opened, "plan_of_the_run", find)
    monkeypatch.setattr(opened, "begin", lambda *options: began.append(options[:1]))
    monkeypatch.setattr(opened, "ROOT", tmp_path)
    report = opened.STAGES["report"].output_path(tmp_path, plan.aggregate)
    report.parent.mkdir(parents=True)
    for new, main, warm, reported, expected in (
        (True, True, True, False, [(), ("--last",)]), (False, True, True, False, [("--last",)]),
        (False, True, True, True, []), (True, True, False, False, []), (True, False, True, False, []),
    ):  # fmt: skip
        began.clear()
        report.unlink(missing_ok=True)
        if reported:
            report.touch()
        assert opened.find_plan((), main=main, warm=warm) == plan
        assert began == expected, (new, main, warm)


def test_an_interrupt_while_snakemake_plans(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback of the planning."""

    def interrupted(*_: object, **__: object) -> Plan:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.execution.workflow.find_plan", interrupted)
    monkeypatch.setattr("pipeline.execution.workflow.jobs_end_with_this", lambda: None)
    monkeypatch.setattr("pipeline.execution.workflow.prefer_programs_in", lambda _: None)
    with pytest.raises(SystemExit):
        open_workflow({}, main=True, dryrun=True)
    assert capsys.readouterr().err == f"error: {INTERRUPTED}\n"
