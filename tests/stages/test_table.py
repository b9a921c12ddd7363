"""STAGES: its rows agree with the modules, the rules and each other."""

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.execution.stage_commands import StageCommands, shell_line
from pipeline.execution.workers import submit
from pipeline.plan.identity.stage_builds import OTHERS
from pipeline.records import layout
from pipeline.stages.table import STAGES, final, later, preload, rounds
from tests.paths import ROOT

RULES = {path.stem: path.read_text() for path in (ROOT / "workflows" / "rules").glob("*.smk")}


@pytest.mark.parametrize("name", STAGES)
def test_a_row_has_a_module_and_a_rule(name: str) -> None:
    """A row without one of them would never run."""
    assert importlib.util.find_spec(f"pipeline.stages.{STAGES[name].program}")
    commands = re.findall(r"(?:run\.shell|shell_line)\((.*?)\)", "".join(RULES.values()))
    assert any(f'"{name}"' in command for command in commands)


def test_every_module_is_in_the_table() -> None:
    """Apart from the table and the code that only some tasks run; identity knows which share a spec."""
    modules = {path.stem for path in (ROOT / "pipeline" / "stages").glob("[a-z]*.py")}
    assert modules - {"table", "optional"} == {stage.program for stage in STAGES.values()}
    assert modules - OTHERS == {stage.program for stage in final()}


def test_order() -> None:
    """A stage comes after those that it reads, unless it reads earlier rounds."""
    names = list(STAGES)
    for stage in STAGES.values():
        for each in stage.inputs:
            if each.rounds != "earlier":
                assert all(names.index(read) < names.index(stage.name) for read in each.stages)
    assert tuple(stage.name for stage in rounds()) == layout.STAGES
    assert later("compile") == ("verify", "profile")
    assert [stage.name for stage in final()] == ["aggregate", "track", "report", "attach"]


@pytest.mark.parametrize("name", ["generate", "compile", "verify", "profile", "mutate", "aggregate", "track"])
def test_rules_and_commands_are_one_line(name: str) -> None:
    """The same options in the same order, with Snakemake and without."""
    command = StageCommands(Path("artifacts"), cores=3).of_keys(name, dict.fromkeys(STAGES, "k"), number=1)
    words = [*command.prepare, command.stage, *command.arguments]
    assert _options(shell_line(name).split()) == _options(words)
    assert f" {command.stage} --spec {{input.spec}} " in shell_line(name)


def _options(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


def test_what_the_warm_worker_imports() -> None:
    """All of it exists; and the client's own names, which it has without importing the table."""
    assert [name for name in preload() if importlib.util.find_spec(name) is None] == []
    workers = {stage.worker for stage in STAGES.values()} - {None}
    assert workers == {submit.WARM, submit.LAST, submit.JUDGE}
    assert submit.KEY_HOLDER in STAGES
