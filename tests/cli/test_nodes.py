"""The command line for a cluster's nodes: asked, listed, forgotten."""

from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.device import FoundDevice
from pipeline.cli.commands.nodes import PROFILE
from pipeline.cli.main import main
from pipeline.execution.cluster.site import Site
from pipeline.plan.cluster_nodes import Node
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.errors import ToolchainError
from tests.paths import ROOT
from tests.plan.project import MACHINE


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the profile and conf/ of this one; its nodes answer, but for the CPU's."""
    for name in ("conf", "workflows"):
        (tmp_path / name).symlink_to(ROOT / name)
    site = (ROOT / PROFILE / "site.yaml").read_text()
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "site.yaml").write_text(site.replace("    # h200:", "    h200:").replace("    #   ", "      "))
    monkeypatch.chdir(tmp_path)

    def answer(hardware: str, site: Site, declared: dict[str, Hardware]) -> Node:
        assert {hardware, "h100"} <= set(declared)
        if hardware == "cpu":
            raise ToolchainError("the node did not answer")
        machine = msgspec.structs.replace(MACHINE, devices=(FoundDevice("cuda", "sm_90", "NVIDIA H200"),))
        return Node(hardware=hardware, machine=machine, host="h", created="2026-01-01T00:00:00+00:00")

    monkeypatch.setattr("pipeline.execution.cluster.probing.probe", answer)
    return tmp_path


def test_all_targets_of_a_site(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that does not answer is told, and keeps none of the others from it; then they are known."""
    assert main(["nodes", "probe", "--profile", "profile"]) == 1
    ended = capsys.readouterr()
    assert ended.err == "error: the node did not answer\n"
    line = "h200: NVIDIA H200 (sm_90), Test CPU, 2 threads, 0 GiB, asked 2026-01-01T00:00:00+00:00\n"
    assert ended.out == line
    assert main(["nodes", "list"]) == 0
    assert capsys.readouterr().out == line
    assert main(["nodes", "forget", "h200"]) == 0
    assert main(["nodes", "forget", "h200"]) == 1
    assert capsys.readouterr().err == "h200: was not known\n"
    assert main(["nodes", "list"]) == 0
    assert capsys.readouterr().out == ""


def test_a_profile_that_is_none(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    assert main(["nodes", "probe", "--profile", "nowhere"]) == 2
    assert capsys.readouterr().err == "error: nowhere/site.yaml: cannot be read: No such file or directory\n"


def test_a_machine_describes_itself(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON, whatever its GPU."""
    assert main(["nodes", "describe", "cpu"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert msgspec.json.decode(line, type=Node).hardware == "cpu"
