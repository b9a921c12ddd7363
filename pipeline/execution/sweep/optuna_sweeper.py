"""The Optuna sweeper: a composed configuration, a launcher and arguments in; what the jobs returned out.

It asks the study for a batch of points, launches them as one DAG, reports their objectives to the study, and
repeats until the limits are reached. The best trials go to the terminal and to `optimization_results.yaml`.
"""

import contextlib
import io
import math
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.object_type import ObjectType
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf

from pipeline.execution.snakemake_command import is_looking
from pipeline.execution.sweep.sweep_jobs import writing
from pipeline.execution.sweep.swept_space import (
    SweepConfiguration,
    SweepLimits,
    Swept,
    read_settings,
    read_space,
)
from pipeline.performance.quantities import digits, seconds
from pipeline.records.errors import SweepError
from pipeline.search.sampling.samplers import Direction, drawn_at_random, require_optuna
from pipeline.search.sampling.study import (
    Answer,
    Evaluated,
    Exploration,
    Failed,
    MeasuredPoint,
    Purpose,
    exploration,
)
from pipeline.search.sampling.study_storage import shown

Number = Callable[[float], str]
NUMBERS: dict[str, Number] = {
    "time": seconds,
    "speedup": lambda value: f"{digits(value)}x",
    "energy": lambda value: f"{digits(1e3 * value)} mJ",
}
"""How the values of an objective are written, by its quantity."""


def plain(value: float) -> str:
    """Write a value whose quantity is not known."""
    return f"{value:g}"


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
            _introduce(explored, settings, swept, self._number())
            try:
                launch = self._launch(swept, len(purpose.directions))
                explore(explored, settings.limits, launch, say=_say, number=self._number())
            finally:
                _conclude(explored, swept, folder, self._number())
            if not explored.best():
                last = explored.failures()[-1:]
                raise SweepError(
                    "no trial came to a value" + "".join(f"; the last one: {why}" for why in last)
                )
        return self.returns

    def _only_shown(self) -> bool:
        """Whether the launcher runs nothing (a dry run), so that its jobs have no values."""
        arguments = OmegaConf.select(self.config, "hydra.launcher.arguments", default=())
        return is_looking([str(argument) for argument in arguments or ()])

    def _show_a_batch(
        self, purpose: Purpose, settings: SweepConfiguration, swept: Swept
    ) -> list[Sequence[JobReturn]]:
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

    def _number(self) -> Number:
        """How a value of the configured objective is written for people."""
        quantity = OmegaConf.select(self.config, "objective.quantity", default=None)
        return NUMBERS.get(cast(str, quantity), plain)

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


def _introduce(explored: Exploration, settings: SweepConfiguration, swept: Swept, number: Number) -> None:
    size = swept.space.size
    points = f"{size} points" if size is not None else "a space of real numbers"
    _say(f"study {explored.name} in {shown(settings.storage)}: {settings.sampler.name}, {points}")
    drawn = drawn_at_random(settings.sampler, swept.space)
    if drawn:
        _say(f"{settings.sampler.name} searches numbers; drawn at random: {', '.join(drawn)}")
    if explored.finished():
        _say(f"resumed: {progress(explored, settings.limits, number)}")


def _conclude(explored: Exploration, swept: Swept, folder: Path, number: Number) -> None:
    """Print and write the best that is known."""
    best = explored.best()
    if not best:
        return
    with writing(folder):
        path = write_results(folder, best, len(explored.directions))
    print("\n".join(["", *result_lines(best, swept.fixed, number), f"results  {path}"]), flush=True)


def _say(line: str) -> None:
    print(f"optuna   {line}", flush=True)


Launch = Callable[[Sequence[Sequence[str]], int], Sequence[Answer]]
"""Runs one batch: the overrides of each job that are not fixed, and the number of the first job."""

JUDGED = 10
"""A rate of failures is one of so many jobs at least: one unlucky first job ends nothing."""


def explore(
    exploration: Exploration,
    limits: SweepLimits,
    launch: Launch,
    *,
    say: Callable[[str], None],
    number: Number = plain,
) -> None:
    """Run batches until so many trials are finished, the space is exhausted, or the time is over.

    Raises
    ------
    SweepError
        More jobs failed than may.
    """
    began = time.monotonic()
    failed = launched = 0
    while (left := limits.trials - exploration.finished()) > 0:
        if limits.timeout_seconds is not None and time.monotonic() - began > limits.timeout_seconds:
            say(f"the time is over ({limits.timeout_seconds:g} s): {left} of {limits.trials} trials are left")
            return
        first_job = exploration.next_job()
        asked = exploration.ask(min(left, limits.batch), first_job)
        if not asked:
            say(f"the space has no other point: {left} of {limits.trials} trials are left")
            return
        answers = launch([one.point for one in asked], first_job)
        for one, answer in zip(asked, answers, strict=True):
            exploration.tell(one, answer)
        launched += len(asked)
        failed += sum(isinstance(answer, Failed) for answer in answers)
        say(progress(exploration, limits, number))
        if failed > limits.max_failure_rate * max(launched, min(limits.trials, JUDGED)):
            raise SweepError(
                f"{failed} of {launched} jobs failed, hydra.sweeper.max_failure_rate is "
                f"{limits.max_failure_rate:g}; the last one: {exploration.failures()[-1]}"
            )


def progress(exploration: Exploration, limits: SweepLimits, number: Number = plain) -> str:
    """How far the study is, in a line."""
    failures = len(exploration.failures())
    line = f"{exploration.finished()} of {limits.trials} trials" + (
        f", {failures} failed" if failures else ""
    )
    best = exploration.best()
    if not best:
        return line
    if len(exploration.directions) > 1:
        return f"{line}; {len(best)} that no other one beats"
    return f"{line}; best {number(best[0].values[0])} (job {best[0].job})"


def answer_of(job: JobReturn, objectives: int) -> Answer:
    """The objectives of a job: a finite number, or a sequence of as many as there are objectives."""
    if job.status is JobStatus.UNKNOWN:
        return Failed(reason="the job did not end")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # Hydra also prints the overrides of a failed job
            given = job.return_value
    except BaseException as error:  # whatever the job raised
        return Failed(reason=_reason(error))
    return Failed(reason="the job returned nothing") if given is None else _measured(given, objectives)


def _measured(given: Any, objectives: int) -> Answer:
    numbers = list(given) if _is_sequence(given) else [given]
    if len(numbers) != objectives:
        return Failed(reason=f"the job returned {len(numbers)} values, expected {objectives}")
    try:
        values = tuple(float(number) for number in numbers)
    except (TypeError, ValueError):
        return Failed(reason=f"the job returned {given!r}, expected numbers")
    if not all(math.isfinite(value) for value in values):
        return Failed(reason=f"the job returned {', '.join(map(str, values))}")
    return MeasuredPoint(values=values)


def _is_sequence(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _reason(error: BaseException) -> str:
    """The first line of what the job raised; a launcher's own errors stand for themselves."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    name = type(error).__name__
    if isinstance(error, HydraException) and line:
        return line.removeprefix("error: ")  # as it is printed; here it becomes a part of another line
    return f"{name}: {line}" if line else name


FILE = "optimization_results.yaml"
SHOWN = 5  # of several that no other one beats; the file has all


def write_results(folder: Path, best: Sequence[Evaluated], objectives: int) -> Path:
    """Write the file that users of hydra-optuna-sweeper know, and return its path."""
    content: dict[str, object] = {"name": "optuna"}
    if objectives == 1:
        content |= {
            "best_params": best[0].params,
            "best_value": best[0].values[0],
            "best_trial": best[0].trial,
        }
    else:
        content["solutions"] = [
            {"params": one.params, "values": list(one.values), "trial": one.trial} for one in best
        ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    OmegaConf.save(OmegaConf.create(content), path)
    return path


def result_lines(best: Sequence[Evaluated], fixed: Sequence[str], number: Number = plain) -> list[str]:
    """The best values, and the commands that run their jobs again."""
    lines = []
    for one in best[:SHOWN]:
        values = ", ".join(number(value) for value in one.values)
        lines.append(f"best     {values}   job {one.job}: {' '.join(one.point)}")
        lines.append(f"again    {command([*fixed, *one.point])}")
    if len(best) > SHOWN:
        lines.append(f"         and {len(best) - SHOWN} more")
    return lines


def command(overrides: Sequence[str]) -> str:
    """This program with other overrides, as a shell takes it."""
    if sys.argv[0].startswith("kernelmill "):  # Hydra gets the subcommand, `kernelmill run`
        return shlex.join(["kernelmill", "run", *overrides])
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name.removesuffix(".__main__") if spec is not None else None
    program = ["python", "-m", module] if module else ["python", sys.argv[0]]
    return shlex.join([*program, *overrides])
