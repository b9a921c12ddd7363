"""The sweep over a grid. In: overrides with choices and ranges. Out: every combination, launched in batches.

Hydra's own basic sweeper does the same, and composes each job once more to see whether it can be composed:
40 ms a job. Here the launcher finds that out for all jobs at once, before anything runs.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf

from pipeline.execution.sweep.sweep_jobs import writing

Job = tuple[str, ...]
GRIDS = ("KernelmillSweeper", "BasicSweeper")
"""Classes of sweepers that only enumerate: ours, and Hydra's own."""


class GridSweeper(Protocol):
    """What the plugin brings."""

    max_batch_size: int | None
    params: dict[str, str]
    hydra_context: HydraContext | None
    config: DictConfig | None
    launcher: Launcher | None


def sweep(sweeper: GridSweeper, arguments: Sequence[str]) -> list[Sequence[JobReturn]]:
    """Launch all combinations; the returns of each batch.

    Raises
    ------
    SweepStopped
        A job failed; the jobs of its batch have finished, those of later ones have not begun.
    StoreError
        `hydra.sweep.dir` cannot be written.
    """
    assert sweeper.hydra_context is not None and sweeper.config is not None and sweeper.launcher is not None
    lines = [*(f"{key}={value}" for key, value in sweeper.params.items()), *arguments]
    parser = OverridesParser.create(config_loader=sweeper.hydra_context.config_loader)
    jobs = combinations(parser.parse_overrides(lines))
    folder = Path(sweeper.config.hydra.sweep.dir)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(sweeper.config, folder / "multirun.yaml")
    returns: list[Sequence[JobReturn]] = []
    number = 0
    for batch in batches(jobs, sweeper.max_batch_size):
        ended = sweeper.launcher.launch(batch, initial_job_idx=number)
        failed = [str(number + at) for at, job in enumerate(ended) if job.status is JobStatus.FAILED]
        if failed:
            raise SweepStopped(
                f"error: {len(failed)} of {len(ended)} jobs failed: {_some(failed)} (said above)"
            )
        number += len(batch)
        returns.append(ended)
    return returns


def combinations(overrides: Sequence[Override]) -> list[Job]:
    """One job per combination, the last override changing first; a key that stands twice has its last value.

    Raises
    ------
    SweepStopped
        An interval, which cannot be counted; a pattern or a range that holds nothing.
    """
    axes: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if not override.is_sweep_override():
            axes[key] = [f"{key}={override.get_value_element_as_str()}"]
        elif override.is_discrete_sweep():
            axes[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            expected = "range(…), choice(…) or a,b; a searching sweeper takes intervals (hydra/sweeper=…)"
            raise SweepStopped(f"error: {override.input_line}: a grid has no end here (expected {expected})")
        if not axes[key]:
            raise SweepStopped(f"error: {override.input_line}: holds no value, so that there is no job")
    return list(itertools.product(*axes.values()))


def batches(jobs: Sequence[Job], size: int | None) -> Iterator[Sequence[Job]]:
    """Parts of at most so many jobs; all at once where there is no limit.

    Raises
    ------
    SweepStopped
        A limit below 1.
    """
    if size is not None and size < 1:
        raise SweepStopped(f"error: hydra.sweeper.max_batch_size={size}: expected at least 1")
    for start in range(0, len(jobs), size or len(jobs) or 1):
        yield jobs[start : start + size] if size else jobs


def _some(names: Sequence[str], limit: int = 10) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def is_grid(config: Any) -> bool:
    """Whether the sweep's sweeper only enumerates, and needs no objective of a job."""
    return str(config.hydra.sweeper.get("_target_")).rpartition(".")[2] in GRIDS


class SweepStopped(CompactHydraException):
    """The sweep cannot go on: an override is wrong, or jobs failed. One line, with `error:` before it."""


class JobFailed(CompactHydraException):
    """What a sweeper gets that asks a failed job for its return value. One line."""
