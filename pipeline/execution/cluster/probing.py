"""Ask a node what it is. In: a hardware target and its site. Out: the Node, checked against conf/.

The node answers through `srun`, with the options that its jobs will have: a part of a node is another device
than the whole one.
"""

import datetime
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from pipeline.execution.cluster.site import Site
from pipeline.plan.cluster_nodes import Node, host_digest
from pipeline.plan.local_machine import read_machine, resolve
from pipeline.records.configuration.hardware import Hardware
from pipeline.records.environment import untranslated
from pipeline.records.errors import ConfigError, ToolchainError

PROBE_MINUTES = 5


def probe(hardware: str, site: Site, declared: Mapping[str, Hardware]) -> Node:
    """Wait for a node of this target and let it describe itself; `declared` are all targets of conf/hardware.

    Raises
    ------
    ConfigError
        The site has no such target, or its options lead to a node that has another device.
    ToolchainError
        There is no srun, or the job failed.
    """
    if hardware not in site.hardware:
        raise ConfigError(f"hardware '{hardware}': not in the site (it has: {', '.join(site.hardware)})")
    if hardware not in declared:
        raise ConfigError(f"hardware '{hardware}': not in conf/hardware (it has: {', '.join(declared)})")
    answer = _answer(_command(hardware, site))
    try:
        node = msgspec.json.decode(answer, type=Node)
    except msgspec.DecodeError as error:
        raise ToolchainError(f"{hardware}: the node's answer cannot be read: {error}") from None
    machine = node.machine
    if not resolve(declared[hardware], declared, machine).present:
        found = machine.accelerator
        here = found.name if found else f"no GPU, {machine.cpu.facts['model']}"
        raise ConfigError(
            f"hardware '{hardware}': the node that the site's options lead to has another device ({here}): "
            f"see partition, gres and constraint of site.hardware.{hardware}"
        )
    return node


def describe(hardware: str) -> Node:
    """The machine at hand, as the node of a target."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Node(hardware=hardware, machine=read_machine(), host=host_digest(), created=now)


def _command(hardware: str, site: Site) -> list[str]:
    account = [f"--account={site.account}"] if site.account else []
    options = [*site.hardware[hardware].flags(), *account, f"--time={PROBE_MINUTES}", "--ntasks=1"]
    # As the executor's own job steps: within what Slurm gives, no further binding.
    options += ["--cpu-bind=q", f"--job-name=kernelmill-probe-{hardware}"]
    return ["srun", *options, sys.executable, "-m", "pipeline", "nodes", "describe", hardware]


def _answer(command: list[str]) -> str:
    """The last line that the node wrote: prologs of a site may write others."""
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=untranslated())
    except OSError as error:
        raise ToolchainError(f"srun: cannot be started ({error.strerror}): is Slurm here?") from None
    lines = ended.stdout.splitlines()
    if ended.returncode != 0 or not lines:
        shown = " ".join(command[: command.index(sys.executable)])
        raise ToolchainError(f"the node did not answer (exit code {ended.returncode}): {shown}")
    return lines[-1]


def line(node: Node) -> str:
    """A node in one line."""
    machine, facts = node.machine, node.machine.cpu.facts
    found = machine.accelerator
    gpu = f"{found.name} ({found.architecture}), " if found else ""
    return (
        f"{node.hardware}: {gpu}{facts['model']}, {facts['threads']} threads, "
        f"{int(facts['memory_bytes']) / 2**30:.0f} GiB, asked {node.created}"
    )
