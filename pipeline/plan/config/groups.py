"""The groups of conf/, the record that is each group's schema, and the options that lie there."""

from pathlib import Path
from typing import Any

import msgspec

from pipeline.records.configuration.experiment import Experiment
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.search_settings import Search
from pipeline.records.configuration.stage_settings import Profile, Tracking, Verify
from pipeline.records.configuration.workload import Workload
from pipeline.records.errors import ConfigError, hint
from pipeline.records.planning.planned_tasks import Objective
from pipeline.records.record import Record
from pipeline.records.results.mutated import Mutation
from pipeline.search.strategy_registry import strategy, strategy_names

AXES: dict[str, type[Record]] = {
    "kernel": Kernel,
    "workload": Workload,
    "hardware": Hardware,
    "optimization": Optimization,
}
"""Groups of which a task has one option each; their product is a grid."""

SETTINGS: dict[str, type[Record]] = {
    "search": Search,
    "verify": Verify,
    "mutation": Mutation,
    "profile": Profile,
    "tracking": Tracking,
    "objective": Objective,
    "experiment": Experiment,
}
"""Groups of which a plan has one option each."""

GROUPS = {**AXES, **SETTINGS}


def schema_of(group: str, plain: Any) -> Any:
    """The record that is the schema of an option.

    For a search, it includes the settings of its strategy, and of others that the yaml has, by name.
    """
    if group != "search" or not isinstance(plain, dict):
        return GROUPS[group]
    chosen = plain.get("strategy")
    named = [name for name in strategy_names() if name in plain or name == chosen]
    schemas: dict[str, Any] = {name: kind for name in named if (kind := strategy(name).settings) is not None}
    common = [each for each in msgspec.structs.fields(Search) if each.name != "settings"]
    own = [(name, kind if name == chosen else kind | None, None) for name, kind in schemas.items()]
    fields = [(each.name, each.type, each.default) for each in common]
    return msgspec.defstruct("Search", [*fields, *own], bases=(Record,), frozen=True, kw_only=True)


def check_project(folder: Path) -> None:
    """Raise ConfigError unless a project is there: a command that was started elsewhere says so."""
    if not (folder / "conf" / "config.yaml").is_file():
        raise ConfigError(
            f"{folder.absolute()}: no project is here (it has conf/, kernels/, workflows/, profiles/ and "
            "Snakefile): cd to one"
        )


def options(conf: Path, group: str) -> tuple[str, ...]:
    """Names of the options of a group, those in folders of it with the folder's name and a slash.

    Raises
    ------
    ConfigError
        There is no such folder at all.
    """
    if not conf.is_dir():
        check_project(conf.parent)
    folder = conf / group
    files = (path.relative_to(folder).with_suffix("") for path in folder.rglob("*.yaml"))
    return tuple(sorted(path.as_posix() for path in files))


def option_file(conf: Path, group: str, name: str) -> str:
    """The file of an option as messages name it: from the repository's root."""
    return f"{conf.name}/{group}/{name}.yaml"


def check_option(conf: Path, group: str, name: str, where: str) -> None:
    """Raise ConfigError unless the option exists; `where` says who asked for it."""
    if ".." not in name and (conf / group / f"{name}.yaml").is_file():
        return  # the folder is not listed for each option of a grid
    known = options(conf, group)
    if name not in known:
        instead = hint(name, known, folder=f"{conf.name}/{group}")
        raise ConfigError(f"{where}: unknown {group} '{name}'{instead}")
