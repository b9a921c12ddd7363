"""Hydra finds here what `kernelmill sweep` runs with: a launcher, a sweeper and where jobs' folders go.

Hydra executes this module at each start, and takes only classes that are defined in it: the work is done in
`pipeline.execution.sweep`, imported when there is something to do. No `from __future__ import annotations`
here: Hydra executes the module before it registers it, and the dataclasses' names would not be found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn
    from hydra.types import HydraContext, TaskFunction
    from omegaconf import DictConfig

HERE = "hydra_plugins.kernelmill_launcher"


@dataclass
class KernelmillLauncherConf:
    """`hydra.launcher.*`."""

    _target_: str = f"{HERE}.KernelmillLauncher"
    profile: str | None = None
    """Snakemake profile: one of workflows/profiles, a folder, or a name that Snakemake knows."""
    cores: Any = None
    """As Snakemake's --cores; null: all, or what the profile says."""
    arguments: list[str] = field(default_factory=list)
    """More arguments for Snakemake."""
    objective: str = "auto"
    """Whether a job without an objective has failed: required, optional, or auto (the sweeper decides)."""
    output: str = "progress"
    """What is printed: progress and results, quiet (results alone), json (one object for each batch)."""


@dataclass
class KernelmillSweeperConf:
    """`hydra.sweeper.*`: as Hydra's basic sweeper."""

    _target_: str = f"{HERE}.KernelmillSweeper"
    max_batch_size: int | None = None
    """Jobs that become one DAG; null: all."""
    params: dict[str, str] | None = None
    """More overrides to sweep over, before those of the command line."""


class KernelmillLauncher(Launcher):
    """Runs all jobs of a sweep, or of a sweeper's batch, as one Snakemake DAG."""

    def __init__(
        self,
        profile: str | None,
        cores: Any,
        arguments: Sequence[str],
        objective: str,
        output: str = "progress",
    ) -> None:
        self.profile = profile
        self.cores = cores
        self.arguments = arguments
        self.objective = objective
        self.output = output
        self.finished: list[tuple[str, ...]] = []
        """Jobs of earlier batches: they stand in the tables and the report of the later ones."""

    def setup(
        self, *, hydra_context: "HydraContext", task_function: "TaskFunction", config: "DictConfig"
    ) -> None:
        """Keep what Hydra gives."""
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence["JobReturn"]:
        """Run the jobs; each one's return value is its objective."""
        from pipeline.execution.sweep.dag_launcher import launch

        return launch(self, job_overrides, first=initial_job_idx)


class KernelmillSweeper(Sweeper):
    """The product of all choices and ranges, as Hydra's basic sweeper, without composing each job."""

    def __init__(self, max_batch_size: int | None, params: dict[str, str] | None) -> None:
        self.max_batch_size = max_batch_size
        self.params = params or {}

    def setup(
        self, *, hydra_context: "HydraContext", task_function: "TaskFunction", config: "DictConfig"
    ) -> None:
        """Keep what Hydra gives, and make the launcher."""
        from hydra.core.plugins import Plugins

        self.hydra_context = hydra_context
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Launch all jobs, batch after batch; a failed job is an error after its batch."""
        from pipeline.execution.sweep.grid_sweeper import sweep

        return sweep(self, arguments)


_STORE = ConfigStore.instance()
_STORE.store(group="hydra/launcher", name="kernelmill", node=KernelmillLauncherConf, provider="kernelmill")
_STORE.store(group="hydra/sweeper", name="kernelmill", node=KernelmillSweeperConf, provider="kernelmill")
_STORE.store(
    group="hydra/output",
    name="kernelmill",
    node={
        "run": {"dir": "."},
        "sweep": {
            "dir": "artifacts/multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}",
            "subdir": "${hydra.job.num}",
        },
    },
    package="hydra",
    provider="kernelmill",
)
