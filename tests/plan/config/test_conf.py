"""Everything that conf/ declares composes, is right, and says how to use it."""

import re
import shlex
from pathlib import Path

import pytest

from pipeline.plan.config.compose import composer
from pipeline.plan.config.groups import AXES, GROUPS, SETTINGS, options
from pipeline.plan.config.options import OptionLoader
from pipeline.plan.config.overrides import Overrides, parse
from pipeline.plan.local_machine import read_machine
from pipeline.plan.planner import make_plan
from pipeline.records.errors import ConfigError
from pipeline.search import strategy_registry
from tests.paths import ROOT
from tests.selection import slow_unless

CONF = ROOT / "conf"
ALL = [(group, name) for group in GROUPS for name in options(CONF, group)]
NOTHING = Overrides(choices={}, values={})


def test_every_group_has_options() -> None:
    """A group without options, or a folder that is no group, is a mistake."""
    assert {path.name for path in CONF.iterdir() if path.is_dir()} == set(GROUPS)
    assert {group for group, _ in ALL} == set(GROUPS)


@pytest.mark.parametrize("group", AXES)
def test_every_option_of_an_axis_is_right(group: str) -> None:
    """Schema and meaning of every kernel, workload, hardware target and optimization."""
    names = options(CONF, group)
    with composer(CONF) as hydra:
        catalogue = OptionLoader(hydra, NOTHING, ROOT)
        if group == "optimization":
            kernels = tuple(catalogue.kernels(options(CONF, "kernel")).values())
            found = list(catalogue.optimizations(names, kernels))
        else:
            load = {
                "kernel": catalogue.kernels,
                "workload": catalogue.workloads,
                "hardware": catalogue.hardware,
            }
            found = list(load[group](names))
    assert found == list(names)


GIVEN = {
    ("search", "llm"): "search.llm.model=NAME",
    ("search", "candidates"): "search.candidates.folder=docs",
}
"""What has no value that would be right for everyone, and an example of one."""


@pytest.mark.parametrize(("group", "name"), [each for each in ALL if each[0] in SETTINGS])
def test_every_option_of_the_settings_is_right(group: str, name: str) -> None:
    """Schema and meaning of every search, verify, profile, tracking and experiment."""
    given = [GIVEN[group, name]] if (group, name) in GIVEN else []
    with composer(CONF) as hydra:
        settings = OptionLoader(hydra, parse([f"{group}={name}", *given], CONF), ROOT).settings()
    assert getattr(settings, group).name == name.rpartition("/")[2]


@pytest.mark.parametrize(("group", "name"), sorted(GIVEN))
def test_what_must_be_given_is_named(group: str, name: str) -> None:
    """Without it, one line names the file and the key."""
    key = GIVEN[group, name].partition("=")[0].removeprefix(f"{group}.")
    with (
        composer(CONF) as hydra,
        pytest.raises(ConfigError, match=rf"^conf/{group}/{name}.yaml: {key}: missing value"),
    ):
        OptionLoader(hydra, parse([f"{group}={name}"], CONF), ROOT).settings()


@pytest.mark.parametrize("name", slow_unless("default".__eq__, options(CONF, "experiment")))
def test_every_experiment_has_tasks(name: str, tmp_path: Path) -> None:
    """Each experiment plans, and leaves no cell out that it names itself."""
    made = make_plan([(f"experiment={name}",)], root=ROOT, store=tmp_path, machine=read_machine())
    assert made.plan.tasks
    assert made.plan.pruned == ()


@pytest.mark.parametrize(("group", "name"), ALL)
def test_every_yaml_says_its_command(group: str, name: str) -> None:
    """The command in a file's first lines is one that can be typed."""
    text = (CONF / group / f"{name}.yaml").read_text()
    commands = re.findall(r"^# (?:\w.*: )?kernelmill (?:run|sweep|plan)((?: \S+=\S+)*)$", text, re.MULTILINE)
    if group != "hardware":
        assert commands, "the first line says how to use it: # kernelmill run …"
    for command in commands:
        parse(shlex.split(command), CONF)


def test_search_strategies_are_the_registered_ones() -> None:
    """Each has an option of its name, and each option names one of them."""
    assert {path.stem for path in (CONF / "search").glob("*.yaml")} == set(strategy_registry.own_names())
