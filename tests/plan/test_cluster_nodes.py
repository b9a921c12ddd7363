"""Nodes of a cluster: kept per target, and seen by plans."""

from pathlib import Path

import msgspec
import pytest

from pipeline.backends.devices.device import FoundDevice
from pipeline.plan.cluster_nodes import Node, forget_node, read_nodes, with_nodes, write_node
from pipeline.plan.local_machine import ResolvedHardware, fingerprint, identity, resolve
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.errors import StoreError
from tests.plan.project import CPU, MACHINE, Project

OTHER = msgspec.structs.replace(
    MACHINE,
    cpu=msgspec.structs.replace(CPU, architecture="x86-64-v4-node", facts={**CPU.facts, "cores": "64"}),
    devices=(FoundDevice("cuda", "sm_90", "NVIDIA H200"),),
)


def node(hardware: str) -> Node:
    """A node for a target."""
    return Node(hardware=hardware, machine=OTHER, host="h", created="2026-01-01T00:00:00+00:00")


def test_kept_read_forgotten(tmp_path: Path) -> None:
    """Without a node the machine at hand is what it was."""
    assert with_nodes(MACHINE, tmp_path) is MACHINE
    write_node(tmp_path, node("cpu"))
    assert read_nodes(tmp_path) == {"cpu": node("cpu")}
    assert with_nodes(MACHINE, tmp_path).nodes == {"cpu": OTHER}
    assert forget_node(tmp_path, "cpu")
    assert not forget_node(tmp_path, "cpu")
    assert with_nodes(MACHINE, tmp_path) is MACHINE


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    """To plan for the machine at hand instead would be wrong without a word."""
    path = write_node(tmp_path, node("cpu"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StoreError, match=r"cpu\.json: cannot be read as Node"):
        read_nodes(tmp_path)


def test_a_target_is_what_its_node_is() -> None:
    """Architecture, limits and fingerprint come from there; other targets stay with the machine at hand."""
    machine = msgspec.structs.replace(MACHINE, nodes={"cpu": OTHER})
    native = Hardware(name="cpu", description="c", kind="cpu", architecture="native", limits={})
    device = resolve(native, {}, machine)
    assert device.hardware.architecture == "x86-64-v4-node"
    assert fingerprint(device, machine) == identity("cpu", OTHER) != identity("cpu", MACHINE)
    h200 = Hardware(name="h200", description="h", kind="cuda", architecture="sm_90", limits={})
    assert not resolve(h200, {"h200": h200}, machine).present
    there = msgspec.structs.replace(MACHINE, nodes={"h200": OTHER})
    assert resolve(h200, {"h200": h200}, there).present
    assert fingerprint(ResolvedHardware(hardware=h200, present=True), there) == identity("cuda", OTHER)
    assert there.has_devices and not MACHINE.has_devices


def test_a_plan_follows_its_node(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked or forgotten, the kept plan is made anew; the GPU of the node is told from others like it."""
    from pipeline.plan import plan_cache

    monkeypatch.setattr(plan_cache, "read_machine", lambda: MACHINE)

    def present() -> dict[str, bool]:
        lines = ("workload=small", "hardware=h100,h200")
        plan = plan_cache.current_plan(lines, root=project.folder, store=project.store)
        return {task.row.hardware: task.row.device_present for task in plan.tasks}

    assert present() == {"h100": False, "h200": False}
    write_node(project.store, node("h200"))
    assert present() == {"h100": False, "h200": True}
    forget_node(project.store, "h200")
    assert present() == {"h100": False, "h200": False}
