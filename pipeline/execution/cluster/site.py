"""A cluster's site: the key `site` of a profile's site.yaml in, a checked Site and the resources of jobs out.

A job asks for the time that its settings allow at most. A job that Slurm ends at its limit loses no results
that it stored, and the next run continues from them.
"""

import math
import re
from pathlib import Path
from typing import Any

import yaml

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.plan.config.schema import to_record
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import ProfileSpec, VerifySpec
from pipeline.records.record import Record, read_record

SITE_FILE = "site.yaml"
KEY = "site"
# What the executor plugin takes for a generic resource: name:count or name:type:count.
_GRES = re.compile(r"[A-Za-z0-9_]+(:[A-Za-z0-9_.]+)?:\d+")


class Placement(Record, frozen=True, kw_only=True):
    """Where the jobs of one kind go, in Slurm's words (sbatch(1))."""

    cpus: int
    """`--cpus-per-task`: of a CPU target all that a measurement may use."""
    minutes: int
    """The longest `--time` of a job; jobs with little to do ask for less."""
    memory_gib: int | None = None
    """`--mem`; null: what the partition gives."""
    partition: str | None = None
    """`--partition`; null: the default one."""
    gres: str | None = None
    """`--gres`, for example `gpu:h200:1`."""
    constraint: str | None = None
    """`--constraint`: features of a node."""
    qos: str | None = None
    """`--qos`."""
    exclusive: bool = False
    """`--exclusive`: nothing else runs on the node. A CPU target is measured in no other way."""
    options: str = ""
    """Further options of sbatch and srun, as written."""

    def __post_init__(self) -> None:
        """What Slurm would refuse only after the plan was made."""
        for name in ("cpus", "minutes", "memory_gib"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: got {value}, expected at least 1")
        if self.gres is not None and not _GRES.fullmatch(self.gres):
            raise ValueError(f"gres: got '{self.gres}', expected name:count or name:type:count")

    def flags(self) -> list[str]:
        """The options as srun takes them, but for the time."""
        values = {
            "partition": self.partition,
            "gres": self.gres,
            "constraint": self.constraint,
            "qos": self.qos,
            "mem": None if self.memory_gib is None else f"{self.memory_gib}G",
            "cpus-per-task": self.cpus,
        }
        flags = [f"--{name}={value}" for name, value in values.items() if value is not None]
        return [*flags, *self.extra().split()]

    def extra(self) -> str:
        """What the executor plugin has no resource for."""
        return " ".join(part for part in ("--exclusive" if self.exclusive else "", self.options) if part)


class Site(Record, frozen=True, kw_only=True):
    """One cluster as its users see it."""

    account: str | None = None
    """`--account` of all jobs."""
    scratch: str | None = None
    """Folder on the node's own disk for temporary files, `$VARIABLES` of the job allowed; null: $TMPDIR."""
    chain: bool = True
    """compile, verify and profile of a task and round are one Slurm job, on the node that measures."""
    compile: Placement
    """Jobs that need no device: compiling where `chain` is off, targets that are nowhere, mutation."""
    hardware: dict[str, Placement]
    """Where each hardware target is measured."""


def to_site(value: Any, where: str) -> Site:
    """Check what a site.yaml says.

    Raises
    ------
    ConfigError
        One line: the file, the key, what was expected and what it got.
    """
    return to_record(value, Site, where)


def read_site(profile: Path) -> Site:
    """The site of a profile's folder.

    Raises
    ------
    ConfigError
        There is no such file, or it is wrong.
    """
    path = profile / SITE_FILE
    try:
        plain = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from None
    if not isinstance(plain, dict) or KEY not in plain:
        raise ConfigError(f"{path}: missing key '{KEY}' (docs/guide/clusters.md)")
    return to_site(plain[KEY], str(path))


Request = str | int | None
RESOURCES = (
    "slurm_partition", "slurm_account", "gres", "constraint", "qos", "slurm_extra", "cpus_per_task", "mem_mb",
    "runtime",
)  # fmt: skip
"""What the executor plugin reads of a job; None leaves one out."""

START_SECONDS = 300  # libraries from a cold shared disk, ceilings and baselines before the first variant
COMPILE_SECONDS = 120.0  # the limit of one variant: pipeline.stages.compile
# A chained job asks for the sum of its stages' times, and the site's limit is the whole job's.
_SHARES = {"compile": 0.25, "verify": 0.25, "profile": 0.5}


class Cluster:
    """The jobs of one plan on one site."""

    def __init__(self, site: Site, root: Path) -> None:
        self._site = site
        self._root = root

    def check(self, plan: Plan) -> None:
        """Raise ConfigError where the site does not say on which node a present device is."""
        known = ", ".join(sorted(self._site.hardware)) or "none"
        for task in plan.tasks:
            if task.row.device_present and task.row.hardware not in self._site.hardware:
                name = task.row.hardware
                raise ConfigError(
                    f"hardware '{name}': the site does not say where it is measured: "
                    f"add site.hardware.{name} to the profile's site.yaml (it has: {known})"
                )

    def unknown(self, plan: Plan) -> tuple[str, ...]:
        """Targets that the site has, but of which no node was asked yet: they are only compiled for."""
        rows = [task.row for task in plan.tasks]
        return tuple(
            dict.fromkeys(
                row.hardware for row in rows if not row.device_present and row.hardware in self._site.hardware
            )
        )

    def threads(self, stage: str, task: PlannedTask) -> int:
        """Cores of a job: those that it can use, of those that the site gives it."""
        cpus = self._placement(stage, task).cpus
        measures_cpu = stage == "profile" and executes_on_host(task.row.kind) and task.row.device_present
        return cpus if measures_cpu else max(1, min(cpus, task.proposed))

    def requests(self, stage: str, task: PlannedTask | None) -> dict[str, Request]:
        """What a job asks of Slurm, by the names of RESOURCES; without a task, one that needs no device."""
        placement = self._site.compile if task is None else self._placement(stage, task)
        # Chained jobs are one Slurm job, which must have what the largest of them needs.
        cpus = placement.cpus if task is None or self.chains else self.threads(stage, task)
        return {
            "slurm_partition": placement.partition,
            "slurm_account": self._site.account,
            "gres": placement.gres,
            "constraint": placement.constraint,
            "qos": placement.qos,
            "slurm_extra": placement.extra() or None,
            "cpus_per_task": cpus,
            # A size cannot be None for Snakemake; the plugin passes no --mem for 0.
            "mem_mb": 1024 * (placement.memory_gib or 0),
            "runtime": placement.minutes if task is None else self._minutes(stage, task, placement),
        }

    @property
    def cores(self) -> int:
        """Of a job that needs no device."""
        return self._site.compile.cpus

    @property
    def chains(self) -> bool:
        """Whether compile, verify and profile of a task and round are one Slurm job."""
        return self._site.chain

    def _placement(self, stage: str, task: PlannedTask) -> Placement:
        """The node with the device, if any, for jobs that need it or are chained to one that does."""
        needs_device = stage != "compile" or self._site.chain
        if task.row.device_present and needs_device:
            return self._site.hardware[task.row.hardware]
        return self._site.compile

    def _minutes(self, stage: str, task: PlannedTask, placement: Placement) -> int:
        """At most what the settings allow all variants together."""
        seconds = START_SECONDS + task.proposed * self.seconds_per_variant(stage, task)
        share = _SHARES[stage] if self.chains else 1.0
        return max(1, min(math.ceil(seconds / 60), int(placement.minutes * share)))

    def seconds_per_variant(self, stage: str, task: PlannedTask) -> float:
        """The time limit of one variant in a stage, from the settings of its spec."""
        if stage == "compile":
            return COMPILE_SECONDS
        path = spec_path(self._root, stage, getattr(task.row, stage))
        if stage == "verify":
            return read_record(path, VerifySpec).settings.time_limit
        settings = read_record(path, ProfileSpec).settings
        return settings.time_limit * settings.processes_at_most
