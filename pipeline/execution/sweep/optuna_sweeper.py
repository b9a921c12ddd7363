"""Hydra's side of a sweep. In: the composed configuration, the launcher, arguments. Out: what jobs gave."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.object_type import ObjectType
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from pipeline.execution.snakemake_command import is_looking
from pipeline.execution.sweep.job_folders import writing
from pipeline.execution.sweep.loop import explore, progress
from pipeline.execution.sweep.optuna_results import result_lines, write_results
from pipeline.execution.sweep.returns import answer_of
from pipeline.execution.sweep.sweeper_settings import Sweep, read_settings
from pipeline.execution.sweep.swept_space import Swept, read_space
from pipeline.records.errors import SweepError
from pipeline.search.sampling.opening import Purpose, exploration
from pipeline.search.sampling.samplers import Direction, drawn_at_random, require_optuna
from pipeline.search.sampling.storage import shown
from pipeline.search.sampling.study import Answer, Exploration


class HydraSweep:
    """One `--multirun` with the sweeper `optuna`."""

    def __init__(self, config: DictConfig, loader: ConfigLoader, launcher: Launcher) -> None:
        self.config = config
        self.loader = loader
        self.launcher = launcher
        self.returns: list[Sequence[JobReturn]] = []

    def run(self, arguments: Sequence[str]) -> list[Sequence[JobReturn]]:
        """Search, print what came out and write it; returns what the launcher returned for each batch.

        Raises
        ------
        KernelmillError
            Settings, space or storage are wrong, Optuna is missing, or too much failed.
        """
        require_optuna()
        plain = cast(dict[str, Any], OmegaConf.to_container(self.config.hydra.sweeper, resolve=True))
        settings = read_settings(plain, self._direction())
        swept = read_space(settings.params, arguments, self._options)
        purpose = Purpose(space=swept.space, directions=settings.directions, fixed=swept.fixed)
        folder = Path(self.config.hydra.sweep.dir)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            OmegaConf.save(self.config, folder / "multirun.yaml")
        if self._only_shown():
            return self._show_a_batch(purpose, settings, swept)
        with exploration(
            purpose, settings.sampler, storage=settings.storage, name=settings.study_name
        ) as explored:
            _introduce(explored, settings, swept)
            try:
                explore(explored, settings.limits, self._launch(swept, len(purpose.directions)), _say)
            finally:
                _conclude(explored, swept, folder)
            if not explored.best():
                last = explored.failures()[-1:]
                raise SweepError(
                    "no trial came to a value" + "".join(f"; the last one: {why}" for why in last)
                )
        return self.returns

    def _only_shown(self) -> bool:
        """Whether the launcher was told to run nothing, so that its jobs have no values."""
        arguments = OmegaConf.select(self.config, "hydra.launcher.arguments", default=())
        return is_looking([str(argument) for argument in arguments or ()])

    def _show_a_batch(self, purpose: Purpose, settings: Sweep, swept: Swept) -> list[Sequence[JobReturn]]:
        """Launch the first batch of a new study, and keep nothing."""
        with exploration(purpose, settings.sampler, storage=None, name=None) as explored:
            _say("nothing is run or kept: the first batch of a new study")
            count = min(settings.limits.batch, settings.limits.trials)
            points = [one.point for one in explored.ask(count, 0)]
            self._launch(swept, len(purpose.directions))(points, 0)
        return self.returns

    def _direction(self) -> Direction | None:
        """Which way the configured objective is better."""
        return cast(Direction | None, OmegaConf.select(self.config, "objective.direction", default=None))

    def _options(self, key: str) -> list[str]:
        return self.loader.get_group_options(key, results_filter=ObjectType.CONFIG)

    def _launch(
        self, swept: Swept, objectives: int
    ) -> Callable[[Sequence[Sequence[str]], int], Sequence[Answer]]:
        def launch(points: Sequence[Sequence[str]], first_job: int) -> Sequence[Answer]:
            jobs = [[*swept.fixed, *point] for point in points]
            returned = self.launcher.launch(jobs, initial_job_idx=first_job)
            self.returns.append(returned)
            return [answer_of(job, objectives) for job in returned]

        return launch


def _introduce(explored: Exploration, settings: Sweep, swept: Swept) -> None:
    size = swept.space.size
    points = f"{size} points" if size is not None else "a space of real numbers"
    _say(f"study {explored.name} in {shown(settings.storage)}: {settings.sampler.name}, {points}")
    drawn = drawn_at_random(settings.sampler, swept.space)
    if drawn:
        _say(f"{settings.sampler.name} searches numbers; drawn at random: {', '.join(drawn)}")
    if explored.finished():
        _say(f"resumed: {progress(explored, settings.limits)}")


def _conclude(explored: Exploration, swept: Swept, folder: Path) -> None:
    """Print and write the best that is known."""
    best = explored.best()
    if not best:
        return
    with writing(folder):
        path = write_results(folder, best, len(explored.directions))
    print("\n".join(["", *result_lines(best, swept.fixed), f"results  {path}"]), flush=True)


def _say(line: str) -> None:
    print(f"optuna   {line}", flush=True)
