"""The jobs of a sweep as Hydra knows them. In: the sweep's configuration and the jobs' overrides. Out: each
job's number, names and configuration, as Hydra would have composed it, and the return that the sweeper gets.

A whole configuration costs ten milliseconds and is wanted seldom: it is made when somebody asks for it.
"""

import copy
import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from pipeline.plan.config.compose import Compositions, JobConfig, job_configs
from pipeline.plan.config.overrides import read_override
from pipeline.plan.config.values import Plain

_PLAIN_SUBDIR = "${hydra.job.num}"
_NAMES = re.compile(r"\$\{\s*([\w.]+)\s*(:?)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SweepJob:
    """One job."""

    number: int
    lines: tuple[str, ...]
    config: JobConfig
    choices: Plain
    override_dirname: str
    folder: Path

    @property
    def runtime(self) -> dict[str, Any]:
        """What differs in Hydra's own configuration: dotted key -> value."""
        return {
            "overrides.task": list(self.lines),
            "job.num": self.number,
            "job.id": str(self.number),
            "job.override_dirname": self.override_dirname,
            "runtime.output_dir": str(self.folder.absolute()),
            "runtime.choices": self.choices,
        }


class SweepJobs:
    """Makes the jobs of one sweep."""

    def __init__(self, master: DictConfig, conf: Path, known: Compositions | None = None) -> None:
        """`known` is what was composed of `conf` already."""
        self.master = master
        self._conf = conf
        self._known = known
        self._naming = master.hydra.job.config.override_dirname
        self._folder = Path(str(master.hydra.sweep.dir))
        written = OmegaConf.to_container(master.hydra.sweep, resolve=False)
        assert isinstance(written, dict)
        self._subdir = str(written["subdir"])
        self._scratch = copy.deepcopy(master)
        # Which launcher, sweeper, … there are is said on the command line, not by the jobs.
        choices = master.hydra.runtime.choices
        self._hydras = {group: choices[group] for group in choices if str(group).startswith("hydra/")}

    def make(self, overrides: Sequence[tuple[str, ...]], first: int) -> list[SweepJob]:
        """The jobs with these overrides, numbered from `first`.

        Raises
        ------
        ConfigError
            An override is wrong.
        """
        configs = job_configs(overrides, self._conf, self._known)
        return [
            self._job(first + at, lines, config)
            for at, (lines, config) in enumerate(zip(overrides, configs, strict=True))
        ]

    def _job(self, number: int, lines: tuple[str, ...], config: JobConfig) -> SweepJob:
        job = SweepJob(
            number=number,
            lines=lines,
            config=config,
            choices={**config.choices, **self._hydras},
            override_dirname=self._dirname(lines),
            folder=self._folder,
        )
        return dataclasses.replace(job, folder=self._folder / self._subfolder(job))

    def _dirname(self, lines: tuple[str, ...]) -> str:
        """As Hydra makes it of the overrides."""
        excluded = set(self._naming.exclude_keys)
        kept = sorted(line for line in lines if read_override(line).key_or_group not in excluded)
        return str(self._naming.item_sep).join(kept).replace("=", str(self._naming.kv_sep))

    def _subfolder(self, job: SweepJob) -> str:
        if self._subdir == _PLAIN_SUBDIR:
            return str(job.number)
        names = _NAMES.findall(self._subdir)
        own = all(name.startswith("hydra.") and not resolver for name, resolver in names)
        config = _with_job(self._scratch, job) if own else self.config(job)
        before = HydraConfig.instance().cfg
        HydraConfig.instance().set_config(config)
        try:
            return str(OmegaConf.select(config, "hydra.sweep.subdir", throw_on_missing=True))
        finally:
            HydraConfig.instance().cfg = before

    def config(self, job: SweepJob) -> DictConfig:
        """The job's whole configuration: ours and Hydra's."""
        made = _with_job(copy.deepcopy(self.master), job)
        with read_write(made), open_dict(made):
            for key in [key for key in made if key != "hydra"]:
                del made[key]
            for key, value in job.config.plain.items():
                made[key] = value
        OmegaConf.set_struct(made, True)
        OmegaConf.copy_cache(from_config=self.master, to_config=made)
        return made


def _with_job(config: DictConfig, job: SweepJob) -> DictConfig:
    """The same configuration, Hydra's part filled in for a job."""
    OmegaConf.set_readonly(config.hydra, False)
    with read_write(config), open_dict(config.hydra):
        for key, value in job.runtime.items():
            OmegaConf.update(config.hydra, key, value, merge=False)
    return config


class LazyJobReturn(JobReturn):
    """A job's return; its configurations are made when they are looked at."""

    def __init__(self, job: SweepJob, make: Callable[[SweepJob], DictConfig], task_name: str) -> None:
        self._job = job
        self._make = make
        self._given: dict[str, DictConfig | None] = {}
        self._outcome: float | HydraException | None = None
        super().__init__(overrides=list(job.lines), working_dir=str(Path.cwd()), task_name=task_name)
        self._given.clear()

    @property
    def cfg(self) -> DictConfig | None:
        """The job's configuration without Hydra's."""
        if "cfg" not in self._given:
            made = self._make(self._job)
            self._given["cfg"] = OmegaConf.masked_copy(made, [str(key) for key in made if key != "hydra"])
        return self._given["cfg"]

    @cfg.setter
    def cfg(self, value: DictConfig | None) -> None:
        self._given["cfg"] = value

    @property
    def hydra_cfg(self) -> DictConfig | None:
        """Hydra's part of it."""
        if "hydra_cfg" not in self._given:
            self._given["hydra_cfg"] = OmegaConf.masked_copy(self._make(self._job), "hydra")
        return self._given["hydra_cfg"]

    @hydra_cfg.setter
    def hydra_cfg(self, value: DictConfig | None) -> None:
        self._given["hydra_cfg"] = value

    def completed(self, value: float | None) -> None:
        """The job came to its end."""
        self.return_value = self._outcome = value
        self.status = JobStatus.COMPLETED

    def failed(self, error: HydraException) -> None:
        """Whoever asks for its value gets the error."""
        self.return_value = self._outcome = error
        self.status = JobStatus.FAILED

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is one of Hydra's own."""
        return JobReturn, (
            self.overrides,
            self.cfg,
            self.hydra_cfg,
            self.working_dir,
            self.task_name,
            self.status,
            self._outcome,
        )


def plain_hydra(master: DictConfig) -> Plain:
    """Hydra's own configuration as it is written into `.hydra/hydra.yaml`, interpolations as they stand."""
    plain = OmegaConf.to_container(master.hydra, resolve=False, enum_to_str=True)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}
