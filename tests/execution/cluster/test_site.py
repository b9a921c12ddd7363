"""A site's yaml: what ships is right, and a mistake is one line."""

from pathlib import Path

import pytest
import yaml

from pipeline.execution.cluster.site import Placement, Site, read_site, to_site
from pipeline.plan.config.groups import options
from pipeline.records.errors import ConfigError
from tests.paths import ROOT

PROFILE = ROOT / "workflows" / "profiles" / "slurm"
LEAST = {"compile": {"cpus": 2, "minutes": 10}, "hardware": {}}


def site(**changes: object) -> Site:
    """The shortest site, with changes."""
    return to_site({**LEAST, **changes}, "site.yaml")


def test_the_profile_that_ships() -> None:
    """Its site is valid, its targets exist, and a CPU is measured on a node of its own."""
    found = read_site(PROFILE)
    assert set(found.hardware) <= set(options(ROOT / "conf", "hardware"))
    assert found.hardware["cpu"].exclusive
    assert "nodes probe" in (PROFILE / "site.yaml").read_text()


def test_beside_a_workflow_profile_the_default_one_does_not_apply() -> None:
    """So the Slurm profile repeats what the default one says, but for the one GPU of a single machine."""
    slurm, default = (
        yaml.safe_load((folder / "profile.yaml").read_text())
        for folder in (PROFILE, ROOT / "profiles" / "default")
    )
    assert default.pop("resources") == ["gpu=1"]
    assert "resources" not in slurm
    assert {key: slurm.get(key) for key in default} == default


def test_flags_of_a_placement() -> None:
    """As srun takes them; what is not said is left to the partition."""
    assert Placement(cpus=4, minutes=10).flags() == ["--cpus-per-task=4"]
    whole = Placement(
        cpus=8, minutes=5, memory_gib=64, partition="gpu", gres="gpu:h200:1", constraint="a&b", qos="q",
        exclusive=True, options="--nice=5",
    )  # fmt: skip
    assert whole.flags() == [
        "--partition=gpu", "--gres=gpu:h200:1", "--constraint=a&b", "--qos=q", "--mem=64G",
        "--cpus-per-task=8", "--exclusive", "--nice=5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"acount": "x"},
            "site.yaml: unknown key 'acount' (known: account, scratch, chain, compile, hardware)",
        ),
        ({"compile": {"cpus": 2}}, "site.yaml: missing key 'minutes' in compile (expected an integer)"),
        ({"compile": {"cpus": 0, "minutes": 1}}, "cpus: got 0, expected at least 1"),
        (
            {"hardware": {"h200": {"cpus": 1, "minutes": 1, "gres": "gpu=h200"}}},
            "gres: got 'gpu=h200', expected name:count or name:type:count",
        ),
        ({"hardware": {"h200": "gpu"}}, "site.yaml: hardware.h200: expected a mapping, got str 'gpu'"),
    ],
)
def test_a_mistake_names_the_key(changes: dict[str, object], text: str) -> None:
    """File, key, what was expected, what it got."""
    with pytest.raises(ConfigError) as caught:
        site(**changes)
    assert text in str(caught.value)


def test_a_profile_without_a_site(tmp_path: Path) -> None:
    """No file, no YAML, no key: each is told."""
    with pytest.raises(ConfigError, match="site.yaml: cannot be read: No such file"):
        read_site(tmp_path)
    (tmp_path / "site.yaml").write_text("site: [")
    with pytest.raises(ConfigError, match="site.yaml: not YAML"):
        read_site(tmp_path)
    (tmp_path / "site.yaml").write_text("account: x")
    with pytest.raises(ConfigError, match="missing key 'site'"):
        read_site(tmp_path)
