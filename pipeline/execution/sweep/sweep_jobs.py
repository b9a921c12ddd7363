"""The jobs of a sweep as Hydra describes them: configuration and overrides in, jobs and folders out.

A job has the number, names and configuration that Hydra would have composed, and the return for the sweeper.
A whole configuration costs ten milliseconds and is rarely needed: it is made on first use. Hydra spends 50 ms
on the files of a job's folder, `.hydra/{config,hydra,overrides}.yaml`; most of their texts are equal for all
jobs of a sweep, so each distinct text is made once.
"""

import contextlib
import copy
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from pipeline.plan.config.compose import Compositions, JobConfig, job_configs
from pipeline.plan.config.overrides import read_override
from pipeline.plan.config.plain_options import Plain, dump
from pipeline.store.atomic import unwritable

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
        """Mark the job as finished."""
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


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What goes wrong with files in here is the user's to mend: the folder is `hydra.sweep.dir`.

    Raises
    ------
    StoreError
        No space, no permission, or a file in the way.
    """
    try:
        yield
    except OSError as error:  # one of a write that began does not know its file
        raise unwritable(Path(error.filename or folder), error) from error


class JobFolders:
    """Writes the folders of one sweep's jobs."""

    def __init__(self, jobs: SweepJobs) -> None:
        self._hydra = plain_hydra(jobs.master)
        self._subdir = self._hydra.get("output_subdir")
        self._texts = YamlTexts()
        self._commons: dict[str, str] = {}

    def write(self, job: SweepJob) -> None:
        """Make the job's folder with Hydra's files; without these where `hydra.output_subdir` is null.

        Raises
        ------
        StoreError
            It cannot be written.
        """
        with writing(job.folder):
            job.folder.mkdir(parents=True, exist_ok=True)
            if self._subdir is None:
                return
            folder = job.folder / str(self._subdir)
            folder.mkdir(parents=True, exist_ok=True)
            _write(f"{folder}/config.yaml", self._texts.mapping(job.config.plain.items()))
            _write(f"{folder}/hydra.yaml", self._hydra_text(job))
            _write(f"{folder}/overrides.yaml", list_text(job.lines))

    def _hydra_text(self, job: SweepJob) -> str:
        """What is the job's own stands at the end of its part; the rest is the same text for all jobs."""
        own: dict[str, Plain] = {}
        for path, value in job.runtime.items():
            part, _, key = path.partition(".")
            own.setdefault(part, {})[key] = value
        return "hydra:\n" + "".join(
            [
                self._common(name, tuple(own[name])) + self._own(own[name])
                if name in own
                else self._texts.mapping([(name, value)], depth=1)
                for name, value in self._hydra.items()
            ]
        )

    def _own(self, values: Plain) -> str:
        """What one job alone has: nothing of it is kept."""
        return "".join(
            [
                f"    {key}:\n{list_text(value, depth=2)}"
                if isinstance(value, list) and value
                else YamlTexts().mapping([(key, value)], depth=2)
                for key, value in values.items()
            ]
        )

    def _common(self, name: str, left_out: tuple[str, ...]) -> str:
        """A part of Hydra's configuration without the keys that each job has its own of."""
        if name not in self._commons:
            kept = {key: value for key, value in self._hydra[name].items() if key not in left_out}
            self._commons[name] = f"  {name}:\n" + self._texts.mapping(kept.items(), depth=2)
        return self._commons[name]


def _write(path: str, text: str) -> None:
    with open(path, "wb") as stream:  # noqa: PTH123  (pathlib costs as much as the writing)
        stream.write(text.encode())


_NAME = re.compile(r"(?:\+{0,2}[A-Za-z_]|/)[A-Za-z0-9_./=,+-]{0,999}")
"""Strings that need no quotes and that no line ends in, unless they are one of these:"""
_WORDS = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null", "inf", "infinity", "nan"))
_DIGITS = re.compile(r"[0-9]{1,18}")
_LONGEST_KEY = 100  # beyond 128 characters a key has another form


class YamlTexts:
    """Makes texts, and keeps those of what may come again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[Any, str]] = {}

    def mapping(self, items: Iterable[tuple[Any, Any]], depth: int = 0) -> str:
        """The lines of a mapping below so many others."""
        return "".join([self._entry(key, value, depth) for key, value in items])

    def _entry(self, key: Any, value: Any, depth: int) -> str:
        if not isinstance(key, str) or len(key) > _LONGEST_KEY or not _is_name(key):
            return _below(depth, {key: value})
        simple = _scalar(value)
        if simple is not None:
            return f"{'  ' * depth}{key}: {simple}\n"
        # Nothing is changed in place: an object stands for its content; kept, its identity stays its own.
        known = (key, depth, value if isinstance(value, str) else id(value))
        if known not in self._kept:
            self._kept[known] = (value, self._made(key, value, depth))
        return self._kept[known][1]

    def _made(self, key: str, value: Any, depth: int) -> str:
        if isinstance(value, dict) and value:
            return f"{'  ' * depth}{key}:\n{self.mapping(value.items(), depth + 1)}"
        return _below(depth, {key: value})


def list_text(values: Sequence[str], depth: int = 0) -> str:
    """The lines of a list of strings at the place of a mapping below so many others."""
    simple = [_scalar(each) for each in values]
    if not simple or None in simple:
        return dump(values) if depth == 0 else _below(depth, {"_": list(values)}).partition("\n")[2]
    return "".join([f"{'  ' * depth}- {each}\n" for each in simple])


def _scalar(value: Any) -> str | None:
    """What needs no thought; None where PyYAML is to be asked."""
    if isinstance(value, str):
        if _is_name(value):
            return value
        return f"'{value}'" if _DIGITS.fullmatch(value) else None
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value) if isinstance(value, int) else None


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text.lstrip("+").lower() not in _WORDS


def _below(depth: int, value: Plain) -> str:
    """The lines of a mapping where they stand below other keys."""
    for _ in range(depth):
        value = {"_": value}
    return "".join(dump(value).splitlines(keepends=True)[depth:])
