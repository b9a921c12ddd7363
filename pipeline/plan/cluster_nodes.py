"""Nodes of a cluster that plans count on. In: what a node said of itself, by hardware target. Out: a Machine.

`kernelmill nodes probe` asks a node and keeps its answer under artifacts/nodes/. From then on the
plans of this checkout take the target's facts and its device from there instead of from the machine at hand.
"""

import hashlib
import platform
from pathlib import Path

import msgspec

from pipeline.plan.local_machine import Machine
from pipeline.records.record import Record, read_record, to_json
from pipeline.store.atomic import write_atomic

FOLDER = "nodes"


class Node(Record, frozen=True, kw_only=True):
    """A node as it described itself."""

    hardware: str
    """The target that it measures."""
    machine: Machine
    host: str
    """Digest of its name."""
    created: str
    """UTC, ISO 8601."""


def host_digest() -> str:
    """Tells machines apart without naming them."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def read_nodes(store: Path) -> dict[str, Node]:
    """The nodes that were asked, by hardware target.

    Raises
    ------
    StoreError
        A file is not a node's description: ask the node again.
    """
    paths = sorted((store / FOLDER).glob("*.json"))
    return {path.stem: read_record(path, Node) for path in paths}


def write_node(store: Path, node: Node) -> Path:
    """Keep a node's answer; it replaces an earlier one."""
    path = store / FOLDER / f"{node.hardware}.json"
    write_atomic(path, to_json(node))
    return path


def forget_node(store: Path, hardware: str) -> bool:
    """Plans take the target from the machine at hand again; whether there was anything to forget."""
    path = store / FOLDER / f"{hardware}.json"
    known = path.is_file()
    path.unlink(missing_ok=True)
    return known


def with_nodes(machine: Machine, store: Path) -> Machine:
    """The machine at hand, with the nodes that stand in for it."""
    found = {name: node.machine for name, node in read_nodes(store).items()}
    return msgspec.structs.replace(machine, nodes=found) if found else machine
