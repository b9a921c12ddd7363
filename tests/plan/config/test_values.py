"""A value that is set on a copy is what Hydra would have composed."""

import pytest

from pipeline.plan.config.compose import composer
from pipeline.plan.config.values import applicable, with_values
from pipeline.records.errors import ConfigError
from tests.plan.project import Project

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
def test_what_is_left_to_hydra(alone, line: str) -> None:
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
