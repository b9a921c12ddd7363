"""Hydra's sweeper `optuna`: the class that Hydra finds; the work is in `pipeline.execution.sweep`.

Hydra executes this module at each start, before it registers it (so no `from __future__ import annotations`),
and finds a plugin only where its class is defined here.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

SAMPLERS = {
    "brute_force": (),
    "cmaes": ("sigma0", "n_startup_trials", "restart_strategy", "popsize", "inc_popsize", "with_margin"),
    "gp": ("n_startup_trials", "deterministic_objective"),
    "grid": (),
    "nsgaii": ("population_size", "mutation_prob", "crossover_prob", "swapping_prob"),
    "nsgaiii": ("population_size", "mutation_prob", "crossover_prob", "swapping_prob", "dividing_parameter"),
    "qmc": ("qmc_type", "scramble"),
    "random": (),
    "tpe": ("n_startup_trials", "n_ei_candidates", "multivariate", "group", "constant_liar"),
}
"""Name -> settings that are there to be set; others are added with `+hydra.sweeper.sampler.<setting>=`."""


@dataclass
class OptunaSweeperConf:
    """`hydra.sweeper` with its defaults; `pipeline.execution.sweep.swept_space` checks it."""

    _target_: str = "hydra_plugins.kernelmill_optuna.OptunaSweeper"
    _recursive_: bool = False  # a sampler that is named by its class is not made by Hydra
    defaults: list[Any] = field(default_factory=lambda: ["_self_", {"sampler": "tpe"}])

    sampler: Any = None
    # minimize, maximize, or a list of them; null: the one of the configured objective
    direction: Any = None
    # any Optuna storage URL; null: in memory, nothing to resume
    storage: str | None = "sqlite:///artifacts/optuna.db"
    # null: derived from the space, the fixed overrides and the sampler, so that the same command resumes
    study_name: str | None = None
    # trials that are finished in the end, those of earlier runs of the study among them
    n_trials: int = 20
    # trials that are asked for at once and are one launch: one DAG; null: 8
    batch: int | None = None
    # the published plugin's name for it
    n_jobs: int | None = None
    # share of failed jobs, of ten jobs at least, above which the sweep stops
    max_failure_rate: float = 0.5
    # seconds after which no batch is begun
    timeout: float | None = None
    # the space, or part of it: key -> choice(…), range(…), interval(…) or a plain value
    params: dict[str, Any] | None = None
    # of the published plugin; not taken, and said so
    custom_search_space: str | None = None


class OptunaSweeper(Sweeper):
    """Searches values of the configuration in batches, each of which is one launch."""

    def __init__(self, **settings: Any) -> None:  # noqa: ARG002
        # The settings are `hydra.sweeper`, which `setup` gives with the rest of the configuration.
        self.config: DictConfig | None = None
        self.hydra_context: HydraContext | None = None
        self.launcher: Launcher | None = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra gives, and make the launcher."""
        from hydra.core.plugins import Plugins

        self.config = config
        self.hydra_context = hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Returns what the launcher returned for each batch; an error that the user can fix is one line."""
        from pipeline.execution.sweep.optuna_sweeper import HydraSweep
        from pipeline.records.errors import KernelmillError

        assert self.config is not None and self.hydra_context is not None and self.launcher is not None
        try:
            return HydraSweep(self.config, self.hydra_context.config_loader, self.launcher).run(arguments)
        except KernelmillError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)


store = ConfigStore.instance()
store.store(group="hydra/sweeper", name="optuna", node=OptunaSweeperConf, provider="kernelmill")
for _name, _settings in SAMPLERS.items():
    _node = {"name": _name, "seed": 0, **dict.fromkeys(_settings)}
    store.store(group="hydra/sweeper/sampler", name=_name, node=_node, provider="kernelmill")
