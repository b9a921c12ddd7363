"""Where a job goes: a site, and a stage with its task, in; the resources of the executor plugin out.

A job asks for the time that its settings allow at most. One that Slurm ends at its limit loses nothing that
it stored, and the next run goes on there.
"""

import math
from pathlib import Path

from pipeline.execution.cluster.site import Placement, Site
from pipeline.records.errors import ConfigError
from pipeline.records.layout import spec_path
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.planning.specs import ProfileSpec, VerifySpec
from pipeline.records.record import read_record

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
        measures_cpu = stage == "profile" and task.row.kind == "cpu" and task.row.device_present
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
        seconds = START_SECONDS + task.proposed * self._seconds_per_variant(stage, task)
        share = _SHARES[stage] if self.chains else 1.0
        return max(1, min(math.ceil(seconds / 60), int(placement.minutes * share)))

    def _seconds_per_variant(self, stage: str, task: PlannedTask) -> float:
        if stage == "compile":
            return COMPILE_SECONDS
        path = spec_path(self._root, stage, getattr(task.row, stage))
        if stage == "verify":
            return read_record(path, VerifySpec).settings.time_limit
        settings = read_record(path, ProfileSpec).settings
        return settings.time_limit * settings.processes_at_most
