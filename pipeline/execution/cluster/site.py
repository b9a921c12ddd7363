"""A site's own settings: the key `site` of a profile's site.yaml in, a checked Site out."""

import re
from pathlib import Path
from typing import Any

import yaml

from pipeline.plan.config.schema import to_record
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record

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
