"""Options as plain mappings: files read, and values set, without Hydra."""

from pathlib import Path

import pytest

from pipeline.plan.config.compose import Composer, Compositions, composer
from pipeline.plan.config.groups import GROUPS, options
from pipeline.plan.config.plain_options import applicable, read_literal, with_values
from pipeline.records.errors import ConfigError
from tests.plan.project import ROOT, Project


@pytest.mark.slow
def test_every_option_is_what_hydra_composes() -> None:
    """All of conf/: equal, of the same types and in the same order; nearly all need no Hydra."""
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
            "defaults: [x, _self_]\na: 1",
            "defaults: [_self_, y]\na: 1",
            "defaults: [absent, _self_]\na: 1",
            "defaults: [optional y, _self_]\na: 1",
            "defaults: [y@z, _self_]\na: 1",
            "defaults: [y: z, _self_]\na: 1",
            "defaults: [heir, _self_]\na: 1",
            "defaults: [y, _self_]\na: {b: 1}",
            "defaults: [y, _self_]\nc: 1",
            "defaults: [y, _self_]\na: ???",
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
    """A configuration folder with one workload, and with others that it may inherit from."""
    (folder / "workload").mkdir()
    (folder / "workload" / "x.yaml").write_text(text)
    (folder / "workload" / "y.yaml").write_text("a: 0\nb: [1, 2]\nc: {d: 1, e: {f: 2}}\n")
    (folder / "workload" / "heir.yaml").write_text("defaults: [x, _self_]\n")
    return folder


@pytest.mark.parametrize(
    "own", ["", "a: 2", "z: 1\nb: [3]", "c: {e: {f: 3, g: 4}, d: null}\na: null", "z: ???"]
)
def test_what_is_inherited_is_merged_as_hydra_merges_it(tmp_path: Path, own: str) -> None:
    """Mappings key by key, in the same order; lists as a whole."""
    conf = write(tmp_path, f"defaults: [y, _self_]\n{own}")
    with composer(conf) as hydra:
        for name in ("x", "heir"):
            expected = hydra.compose_alone("workload", name, ()).plain["workload"]
            assert repr(read_literal(conf, "workload", name)) == repr(expected)


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
    assert len(composed) == 1  # the settings


def test_a_composer_of_its_own(project: Project) -> None:
    """Without anything known it composes itself."""
    with composer(project.folder / "conf") as hydra:
        assert isinstance(hydra, Composer)
        assert hydra.option("workload", "small")["name"] == "small"


SET = [
    "workload.dimensions.tokens=7",
    "workload.dimensions.tokens=-7",
    "workload.dtype=bfloat16",
    "workload.dtype='two words'",
    'workload.dtype="quoted"',
    "workload.dtype=",
    "workload.dtype=null",
    "workload.source=1e-5",
    "workload.source=inf",
    "workload.source=true",
    "workload.source=int(3.9)",
    "workload.source=[1,2,a]",
    "workload.source=[]",
    "workload.dimensions=null",
    "++workload.dimensions.tokens=9",
    "++workload.dimensions.heads=9",
    "+workload.dimensions.heads=4",
    "++workload.new.key=1",
    "+workload.new.deep.key=a",
]
LEFT = [
    "workload.dimensions={tokens:3}",
    "workload.source={a:1}",
    "workload.source=${workload.name}",
    "workload.source=[a,${workload.name}]",
    "workload.source=[[1],2]",
    "workload.dimensions=[1]",
    "~workload.source",
]


@pytest.fixture
def alone(project: Project):
    """Hydra's own composition of the option with overrides."""
    with composer(project.folder / "conf") as hydra:
        yield lambda *lines: hydra.compose_alone("workload", "small", lines).plain["workload"]


@pytest.mark.parametrize("line", SET)
def test_as_hydra_sets_it(alone, line: str) -> None:
    """The same value, of the same type, in the same place."""
    changed = with_values(alone(), "workload", [line])
    expected = alone(line)
    assert repr(changed) == repr(expected)


@pytest.mark.parametrize("line", LEFT)
def test_values_that_are_left_to_hydra(alone, line: str) -> None:
    """Interpolations, new keys, mappings and nested lists."""
    assert with_values(alone(), "workload", [line]) is None


def test_several_values_in_their_order(alone) -> None:
    """The last one holds; the original stays as it was."""
    before = alone()
    lines = ["workload.dimensions.tokens=1", "workload.dimensions.hidden=2", "workload.dimensions.tokens=3"]
    changed = with_values(before, "workload", lines)
    assert changed == alone(*lines)
    assert changed is not None and changed["dimensions"] == {"tokens": 3, "hidden": 2}
    assert before == alone()


def test_an_interpolated_option_is_composed_by_hydra(project: Project) -> None:
    """Another key may hang on the value that is set."""
    project.write(
        "conf/workload/linked.yaml",
        "{name: linked, description: d, source: s, dtype: float32,"
        " dimensions: {tokens: 8, hidden: '${workload.dimensions.tokens}'}}\n",
    )
    with composer(project.folder / "conf") as hydra:
        line = "workload.dimensions.tokens=5"
        assert hydra.option("workload", "linked", (line,))["dimensions"] == {"tokens": 5, "hidden": 5}
        hydra.prepare({"workload": ["linked", "small"]})
        assert hydra.option("workload", "linked", ("workload.dimensions.tokens=6",))["dimensions"] == {
            "tokens": 6,
            "hidden": 6,
        }


def test_settings_of_one_group_in_another(project: Project) -> None:
    """Where a group interpolates another one, both change."""
    project.edit("conf/verify/fast.yaml", "name: fast", "name: fast\ndescription: ${profile.name}s")
    text = (project.folder / "conf/verify/fast.yaml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("description: A")]
    kept = [line for at, line in enumerate(lines) if not line.startswith("description:") or "profile" in line]
    project.write("conf/verify/fast.yaml", "\n".join(kept) + "\n")
    with composer(project.folder / "conf") as hydra:
        overrides = hydra.reader.read(["verify=fast", "profile.name=changed"])
        plain = hydra.settings(overrides).plain
    assert plain["profile"]["name"] == "changed"
    assert plain["verify"]["description"] == "changeds"


def test_a_key_that_is_not_there(project: Project) -> None:
    """The error is the same whoever would set it."""
    with composer(project.folder / "conf") as hydra:
        plain = hydra.option("workload", "small")
        assert applicable("workload.dimensions.tokns=1", "workload", plain) is None
        with pytest.raises(ConfigError, match=r"there is no 'tokns' in workload.dimensions"):
            hydra.chosen("workload", ("small",), ("workload.dimensions.tokns=1",))
