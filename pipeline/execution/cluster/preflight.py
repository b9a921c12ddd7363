"""What a run looks at before its jobs start, and a job on a node before its stage does."""

import sys
from pathlib import Path

from pipeline.execution.cluster.placement import Cluster
from pipeline.execution.cluster.site import Site
from pipeline.plan.cluster_nodes import read_nodes
from pipeline.plan.local_machine import identity, read_machine
from pipeline.records.environment import inside_slurm, stages_run_on_a_node, use_scratch
from pipeline.records.errors import ConfigError
from pipeline.records.planning.planned_tasks import Plan


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
