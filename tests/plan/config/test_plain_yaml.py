"""Options that are read as they stand are what Hydra composes; whatever else is left to Hydra."""

from pathlib import Path

import pytest

from pipeline.plan.config.compose import Composer, Compositions, composer
from pipeline.plan.config.groups import GROUPS, options
from pipeline.plan.config.plain_yaml import read_literal
from tests.plan.project import ROOT, Project


def test_every_option_is_what_hydra_composes() -> None:
    """All of conf/: equal, of the same types and in the same order; most need no Hydra."""
    found = 0
    with composer(ROOT / "conf") as hydra:
        for group in GROUPS:
            for name in () if group == "experiment" else options(ROOT / "conf", group):
                literal = read_literal(ROOT / "conf", group, name)
                if literal is not None:
                    found += 1
                    assert repr(literal) == repr(hydra.compose_alone(group, name, ()).plain[group]), (
                        group,
                        name,
                    )
    assert found > 40


@pytest.mark.parametrize(
    "text",
    [
        "a: 1e3\nb: 1_0\nc: 0x1f\nd: 1:30\ne: 2020-01-01\nf: .5\ng: 1.e2\nh: +7\ni: 010\nj: 0b1",
        "a: yes\nb: No\nc: ~\nd: null\ne:\nf: 'yes'\noff: 1\ng: ???",
        "a: &x {b: [1, 2]}\nc: *x\nd: {<<: *x, e: 1}",
        'a: >\n  two\n  lines\nb: |\n  kept\n\nc: "\\u00e9"',
        "a: .inf\nb: -.INF\nd: 1e400\nf: 12345678901234567890",
        "a.b: {c: 1}",
    ],
)
def test_values_are_read_as_hydra_reads_them(tmp_path: Path, text: str) -> None:
    """OmegaConf's rules for numbers, words and dates, whichever parser it is."""
    conf = write(tmp_path, text)
    with composer(conf) as hydra:
        expected = hydra.compose_alone("workload", "x", ()).plain["workload"]
        assert repr(read_literal(conf, "workload", "x")) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "defaults: [y]\na: 1",
            "# @package _global_\na: 1",
            "a: ${b}\nb: 1",
            "a: ${oc.env:HOME}",
            "hydra: {}",
        ),
        *("a: 1\na: 2", "a: {b: 1, b: 2}", "a: [1", "- 1", "text", "1: a", "1.5: a", "null: a", "[1]: a"),
        *(
            "a: !!set {b}",
            "a: !!binary aGk=",
            "a: !!timestamp 2020-01-01",
            "a: !!python/tuple [1]",
            "a: \x00",
        ),
    ],
)
def test_what_is_left_to_hydra(tmp_path: Path, text: str) -> None:
    """What composes, and what is wrong."""
    assert read_literal(write(tmp_path, text), "workload", "x") is None


def test_no_such_option(tmp_path: Path) -> None:
    """Hydra has the text for it."""
    assert read_literal(tmp_path, "workload", "absent") is None


def write(folder: Path, text: str) -> Path:
    """A configuration folder with one workload."""
    (folder / "workload").mkdir()
    (folder / "workload" / "x.yaml").write_text(text)
    return folder


def test_a_sweep_composes_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many jobs: the plan composes the settings, and the jobs' configurations go on with them."""
    from pipeline.plan.config import compose
    from pipeline.plan.config.compose import job_configs
    from pipeline.plan.planner import make_plan

    composed: list[object] = []
    real = compose.compose_config
    monkeypatch.setattr(compose, "compose_config", lambda *a, **k: composed.append(a) or real(*a, **k))
    jobs = [("workload=small", "hardware=cpu", f"workload.dimensions.tokens={n}") for n in range(1, 40)]
    known = Compositions()
    make_plan(jobs, root=project.folder, store=project.store, machine=project.machine, known=known)
    job_configs(jobs, project.folder / "conf", known)
    assert len(composed) <= 2  # the settings; the presets that inherit


def test_a_composer_of_its_own(project: Project) -> None:
    """Without anything known it composes itself."""
    with composer(project.folder / "conf") as hydra:
        assert isinstance(hydra, Composer)
        assert hydra.option("workload", "small")["name"] == "small"
