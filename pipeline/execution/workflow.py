"""What the Snakefile asks for: the plan, the files that its rules make, one run per checkout at a time.

Snakemake itself is not imported here. The Snakefile's own process plans and holds the lock; the processes
that Snakemake starts for single jobs, and those that only look, do not wait for it. With the profile of a
cluster the config has a site, and every job says where it goes.
"""

import functools
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TextIO

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.execution.cluster.site import KEY, RESOURCES, Cluster, Request, Site, to_site
from pipeline.execution.recovery import recover
from pipeline.execution.snakemake_command import is_looking
from pipeline.execution.snakemake_internals import only_progress
from pipeline.execution.stage_commands import shell_line
from pipeline.execution.workers.submit import LAST, begin
from pipeline.plan.cluster_nodes import read_nodes
from pipeline.plan.local_machine import identity, read_machine
from pipeline.plan.plan_cache import plan_of_jobs, plan_of_the_run
from pipeline.records.environment import (
    inside_slurm,
    jobs_end_with_this,
    prefer_programs_in,
    stages_run_on_a_node,
    use_scratch,
    use_shared_store,
)
from pipeline.records.errors import REMEDIES, ConfigError, KernelmillError, explained, hint
from pipeline.records.layout import spec_path
from pipeline.records.planning.planned_tasks import Plan, PlannedTask, Sweep
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record
from pipeline.stages.table import STAGES, Input, rounds
from pipeline.store.outputs import bring_outputs
from pipeline.store.run_lock import take_lock
from pipeline.store.shared_store import SharedStore, shared_store


def begin_job(site: Site) -> None:
    """In the process that Slurm started for a job: its stages run on their own, with the node's scratch.

    Raises
    ------
    ConfigError
        The site's scratch folder is not on this node.
    """
    if not inside_slurm():
        return
    stages_run_on_a_node()
    if site.scratch is not None:
        use_scratch(site.scratch)


def check_run(plan: Plan, cluster: Cluster | None, store: Path) -> None:
    """Whether the devices that a plan counts on are where its jobs will run.

    Raises
    ------
    ConfigError
        The plan counts on a node, and the run has no site; or the site lacks a target.
    """
    if cluster is None:
        _check_here(plan, store)
        return
    cluster.check(plan)
    for name in cluster.unknown(plan):
        print(
            f"{name}: no node of it was asked what it is, so it counts as absent: compiled, not measured "
            f"(kernelmill nodes probe {name})",
            file=sys.stderr,
        )


def _check_here(plan: Plan, store: Path) -> None:
    """Without a cluster, what is measured on a node may run here only if this machine is one of its kind."""
    rows = {task.row.hardware: task.row for task in plan.tasks if task.row.device_present}
    for name, node in read_nodes(store).items():
        if name not in rows:
            continue
        kind = rows[name].kind
        if identity(kind, node.machine) != identity(kind, read_machine()):
            raise ConfigError(
                f"hardware '{name}' is measured on a node of the cluster, which this machine is not: run "
                f"with --profile workflows/profiles/slurm, or `kernelmill nodes forget {name}`"
            )


ROOT = Path("artifacts")
LOCK = ROOT / ".lock"
CONFIG_KEYS = ("experiment", "overrides", "sweep", "store")
FINAL = ("aggregate", "track", "report")
INTERRUPTED = "interrupted while planning: run again, what was written is whole"


def open_workflow(config: Mapping[str, Any], *, main: bool, dryrun: bool) -> "Workflow":
    """Plan for Snakemake's `--config`; takes the checkout's lock where jobs will run.

    An error that the user can fix is one line, and ends the process.
    """
    if main and not dryrun:
        only_progress()
    looking = dryrun or is_looking(sys.argv[1:])
    # `python` in the rules is the interpreter that runs Snakemake, also where its environment is not active.
    prefer_programs_in(Path(sys.executable).parent)
    jobs_end_with_this()
    try:
        jobs = jobs_of(config)
        site = site_of(config)
        if site is not None and not main:
            begin_job(site)
        shared = share(config)
        lock = take_lock(LOCK) if main and not looking else None
        plan = find_plan(jobs, main=main, warm=not looking and site is None)
        cluster = Cluster(site, ROOT) if site is not None else None
        if main and not looking:
            check_run(plan, cluster, ROOT)
            if shared is not None:
                bring(shared, plan)
        if lock is not None:
            recover(plan, ROOT)
    except KernelmillError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail(INTERRUPTED)
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        _fail(f"{error.filename or ROOT}: {explained(error)}")
    return Workflow(plan, lock, cluster)


def share(config: Mapping[str, Any]) -> SharedStore | None:
    """The shared store of `--config store=…` or $KERNELMILL_STORE, for this process and its jobs.

    Raises
    ------
    StoreError
        The address cannot be used.
    """
    if "store" in config:
        use_shared_store(str(config["store"]))
    return shared_store()


def bring(shared: SharedStore, plan: Plan) -> None:
    """Before Snakemake looks what is missing: what others made of this plan already."""
    brought = bring_outputs(shared, [task.row for task in plan.tasks], ROOT)
    if brought:
        print(f"shared store: {brought} stage outputs of this plan were there", file=sys.stderr)


def find_plan(jobs: tuple[tuple[str, ...], ...], *, main: bool, warm: bool, store: Path = ROOT) -> Plan:
    """The plan. With `warm`, the warm worker starts meanwhile if there will be work: the plan has changed, or
    its report is not there."""
    if not main:
        return plan_of_the_run(jobs, root=Path.cwd(), store=ROOT)
    begun: list[object] = []
    start = (lambda: begun.append(begin())) if warm else lambda: None
    plan = plan_of_jobs(jobs, root=Path.cwd(), store=store, before_making=start)
    if begun or (warm and not STAGES["report"].output_path(ROOT, plan.aggregate).exists()):
        begin(LAST, str(spec_path(ROOT, "aggregate", plan.aggregate)))  # before anything is measured
    return plan


def _fail(reason: str) -> NoReturn:
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(1)


def jobs_of(config: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """What `--config` asks for, as the overrides of jobs: `sweep=FILE` has many, anything else is one.

    Raises
    ------
    ConfigError
        Another key, a sweep with overrides others it, or overrides that are neither a string nor a list.
    StoreError
        The file is not that of a sweep.
    """
    if "sweep" not in config:
        return (overrides_of(config),)
    others = sorted(set(config) - {"sweep", "store", KEY})
    if others:
        raise ConfigError(f"--config sweep=… {others[0]}=…: a sweep's file says all (its key: jobs)")
    return read_record(Path(str(config["sweep"])), Sweep).jobs


def overrides_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """`--config experiment=NAME overrides="…"` as overrides; a list of overrides is taken as it is.

    Raises
    ------
    ConfigError
        Another key, or overrides that are neither a string nor a list.
    """
    unknown = sorted(set(config) - {*CONFIG_KEYS, KEY})
    if unknown:
        raise ConfigError(f"--config {unknown[0]}=…: unknown key{hint(unknown[0], CONFIG_KEYS)}")
    value = config.get("overrides", [])
    if isinstance(value, str):
        lines = shlex.split(value)
    elif isinstance(value, list) and all(isinstance(line, str) for line in value):
        lines = value
    else:
        raise ConfigError(f"--config overrides=…: expected 'group=option …', got {value!r}")
    chosen = [f"experiment={config['experiment']}"] if "experiment" in config else []
    return (*chosen, *lines)


def site_of(config: Mapping[str, Any]) -> Site | None:
    """The site that a cluster's profile brings along; None on a single machine."""
    return to_site(config[KEY], f"--config {KEY}") if KEY in config else None


class Workflow:
    """The rules' side of a plan: for each stage its inputs, outputs, command line and resources.

    What depends on a job's wildcards is a function of them.
    """

    def __init__(self, plan: Plan, lock: TextIO | None = None, cluster: Cluster | None = None) -> None:
        self.plan = plan
        self._lock = lock  # held as long as this object lives
        self._cluster = cluster
        self._requests = functools.cache(self._make_requests)
        self._tasks = {
            stage.name: {getattr(task.row, stage.name): task for task in plan.tasks} for stage in rounds()
        }
        self.cores = cluster.cores if cluster is not None else os.cpu_count() or 1
        self.aggregate, self.tracked, self.report = (self.output(each) for each in FINAL)

    @property
    def rules(self) -> list[str]:
        """The rule files of the stages, in order; `attach` runs in the rule of report."""
        return [f"workflows/rules/{row.name}.smk" for row in STAGES.values() if row.planned and row.file]

    def inputs(self, stage: str) -> dict[str, Any]:
        """Its spec and what it reads of other stages, by the names of its options."""
        found: dict[str, Any] = {"spec": self.spec(stage)}
        for each in STAGES[stage].inputs:
            found[each.name] = self._input(stage, each)
        return found

    def _input(self, stage: str, wanted: Input) -> Any:
        if wanted.rounds == "all":
            return [path for each in wanted.stages for path in self.outputs(each)]
        if STAGES[stage].plan_wide:
            return [self.output(each) for each in wanted.stages]
        return lambda wildcards: self._read(stage, wanted, wildcards)

    def _read(self, stage: str, wanted: Input, wildcards: Any) -> list[str]:
        """What a job of a round reads: outputs of the same round, or of all earlier ones, round by round."""
        row, number = self._task(stage, wildcards).row, int(wildcards.round)
        return [
            str(STAGES[each].output_path(ROOT, getattr(row, each), past))
            for past in (range(number) if wanted.rounds == "earlier" else [number])
            for each in wanted.stages
        ]

    def spec(self, stage: str) -> str:
        """Path of its spec."""
        return str(STAGES[stage].spec_path(ROOT, self._key(stage)))

    def output(self, stage: str) -> str:
        """Path of its output."""
        return str(STAGES[stage].output_path(ROOT, self._key(stage), "{round}"))

    def log(self, stage: str) -> str:
        """Path of its log."""
        return str(STAGES[stage].log_path(ROOT, self._key(stage), "{round}"))

    def shell(self, *stages: str) -> str:
        """The command line of the rule of the first of these stages; nothing is attached to a run in MLflow
        that there is not."""
        return shell_line(*(each for each in stages if each != "attach" or self._tracks()))

    def _tracks(self) -> bool:
        return read_record(Path(self.spec("track")), AggregateSpec).tracking.enabled

    def _key(self, stage: str) -> str:
        return self.plan.aggregate if STAGES[stage].plan_wide else "{key}"

    def outputs(self, stage: str, *, every: bool = False) -> list[str]:
        """All files of a stage that the report reads; with `every` those that it does not read, too."""
        if stage == "mutate":
            keys = dict.fromkeys(each.key for each in self.plan.mutations if every or each.reported)
            return [str(STAGES[stage].output_path(ROOT, key)) for key in keys]
        return [
            str(STAGES[stage].output_path(ROOT, key, number))
            for key, task in self._tasks[stage].items()
            for number in range(task.row.rounds)
        ]

    def threads(self, stage: str) -> int | Callable[[Any], int]:
        """One core per variant (small jobs overlap, a large one has all: Snakemake caps the number), or all.

        A measurement on a CPU target has all cores, so that nothing else runs meanwhile.
        """
        row = STAGES[stage]
        if row.cores == "all":
            return self.cores
        if row.device:
            return self._profile_threads
        return (lambda wildcards: self._threads(stage, wildcards)) if row.cores == "variants" else 1

    def resources(self, stage: str) -> dict[str, Any]:
        """What a job asks of a cluster, and the device where it holds one."""
        row = STAGES[stage]
        if not row.device and not row.runs_there:
            return self.on_cluster(stage)
        return self.on_cluster(stage) | {"gpu": lambda wildcards: self._gpus(stage, wildcards)}

    def _profile_threads(self, wildcards: Any) -> int:
        if self._cluster is not None:
            return self._threads("profile", wildcards)
        return (os.cpu_count() or 1) if executes_on_host(self._task("profile", wildcards).row.kind) else 1

    def _gpus(self, stage: str, wildcards: Any) -> int:
        """The GPU if one is used: the profile's `resources: gpu=1` lets one job at a time have it.

        A cluster has many, and assigns them itself.
        """
        row = self._task(stage, wildcards).row
        return int(not executes_on_host(row.kind) and row.device_present and self._cluster is None)

    def on_cluster(self, stage: str) -> dict[str, Callable[[Any], Request]]:
        """What a job asks of a cluster, each as a function of its wildcards; nothing on a single machine."""
        if self._cluster is None:
            return {}

        def request(name: str) -> Callable[[Any], Request]:
            return lambda wildcards: self._requests(stage, wildcards.key)[name]

        return {name: request(name) for name in RESOURCES}

    def chain(self, stage: str) -> Callable[[Any], str] | None:
        """Name of a job's Slurm job, which compile, verify and profile of a task and round may share."""
        if self._cluster is None or not self._cluster.chains:
            return None
        return lambda wildcards: f"{self._task(stage, wildcards).row.profile}-round{wildcards.round}"

    def _threads(self, stage: str, wildcards: Any) -> int:
        task = self._task(stage, wildcards)
        return self._cluster.threads(stage, task) if self._cluster is not None else max(1, task.proposed)

    def _make_requests(self, stage: str, key: str) -> dict[str, Request]:
        assert self._cluster is not None
        return self._cluster.requests(stage, self._tasks.get(stage, {}).get(key))

    def _task(self, stage: str, wildcards: Any) -> PlannedTask:
        try:
            return self._tasks[stage][wildcards.key]
        except KeyError:
            path = STAGES[stage].output_path(ROOT, wildcards.key, int(wildcards.round))
            hint = "kernelmill plan --paths lists those of this plan"
            raise ConfigError(f"{path}: no task of this plan makes it ({hint})") from None
