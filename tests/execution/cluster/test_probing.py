"""A node is asked through srun, with its jobs' options, and its answer is checked."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.device import FoundDevice
from pipeline.execution.cluster.probing import describe, probe
from pipeline.execution.cluster.site import Placement, Site
from pipeline.plan.cluster_nodes import Node
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.errors import ConfigError, ToolchainError
from pipeline.records.record import to_json
from tests.plan.project import MACHINE

DECLARED = {
    name: Hardware(name=name, description=name, kind="cuda", architecture="sm_90", limits={})
    for name in ("h100", "h200")
}
PLACE = Placement(cpus=4, minutes=60, partition="gpu", gres="gpu:h200:1", exclusive=True)
SITE = Site(account="team", compile=PLACE, hardware={"h200": PLACE, "b200": PLACE})


def node(product: str | None) -> Node:
    """A node's answer."""
    found = (FoundDevice("cuda", "sm_90", product),) if product else ()
    machine = msgspec.structs.replace(MACHINE, devices=found)
    return Node(hardware="h200", machine=machine, host="h", created="2026-01-01T00:00:00+00:00")


@pytest.fixture
def srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An srun that writes down what it is asked, and says what the file `answer` holds."""
    program = tmp_path / "srun"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\ncat {tmp_path}/answer\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


def test_the_node_of_a_target(srun: Path) -> None:
    """The last line counts: a site's prolog may say something first."""
    (srun / "answer").write_bytes(b"Welcome\n" + to_json(node("NVIDIA H200")))
    assert probe("h200", SITE, DECLARED) == node("NVIDIA H200")
    asked = (srun / "asked").read_text().splitlines()
    wanted = {"--partition=gpu", "--gres=gpu:h200:1", "--cpus-per-task=4", "--exclusive", "--account=team"}
    assert wanted <= set(asked)
    assert asked[-5:] == ["-m", "pipeline", "nodes", "describe", "h200"]


@pytest.mark.parametrize(("product", "here"), [("NVIDIA H100 80GB HBM3", "NVIDIA H100"), (None, "no GPU")])
def test_another_device(srun: Path, product: str | None, here: str) -> None:
    """It says what the node has, and which keys lead there."""
    (srun / "answer").write_bytes(to_json(node(product)))
    with pytest.raises(ConfigError) as caught:
        probe("h200", SITE, DECLARED)
    assert f"has another device ({here}" in str(caught.value)
    assert "gres and constraint of site.hardware.h200" in str(caught.value)


def test_no_answer(srun: Path) -> None:
    """A job that fails, an answer that is none."""
    with pytest.raises(ToolchainError, match="the node did not answer .*: srun --partition=gpu"):
        probe("h200", SITE, DECLARED)
    (srun / "answer").write_text("what?")
    with pytest.raises(ToolchainError, match="the node's answer cannot be read"):
        probe("h200", SITE, DECLARED)


def test_no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="srun: cannot be started .*: is Slurm here?"):
        probe("h200", SITE, DECLARED)


def test_unknown_targets() -> None:
    """Of the site, and of conf/hardware."""
    with pytest.raises(ConfigError, match=r"hardware 'h100': not in the site \(it has: h200, b200\)"):
        probe("h100", SITE, DECLARED)
    with pytest.raises(ConfigError, match=r"hardware 'b200': not in conf/hardware \(it has: h100, h200\)"):
        probe("b200", SITE, DECLARED)


def test_this_machine_as_a_node() -> None:
    """What a node says of itself can be sent."""
    found = describe("cpu")
    assert msgspec.json.decode(to_json(found), type=Node) == found
