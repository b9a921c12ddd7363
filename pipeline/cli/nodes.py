"""Nodes of a cluster that this checkout's plans count on: ask them what they are, list them, forget them.

python -m pipeline.cli.nodes probe [HARDWARE ...]     all targets of the site, or these
python -m pipeline.cli.nodes list
python -m pipeline.cli.nodes forget HARDWARE ...      plans take these from the machine at hand again

A probe waits in the queue for a node of each target, with the options of its jobs: docs/guide/clusters.md.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.execution.cluster.probing import describe, probe
from pipeline.execution.cluster.site import read_site
from pipeline.execution.workflow import ROOT
from pipeline.plan.cluster_nodes import Node, forget_node, read_nodes, write_node
from pipeline.records.errors import KernelmillError
from pipeline.records.hardware import Hardware
from pipeline.records.record import to_json

PROFILE = Path("workflows/profiles/slurm")


def main(arguments: Sequence[str]) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.cli.nodes",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    probing = commands.add_parser("probe", help="ask a node of each target, through srun")
    probing.add_argument("hardware", nargs="*", metavar="HARDWARE", help="default: all of the site")
    probing.add_argument("--profile", type=Path, default=PROFILE, help=f"default: {PROFILE}")
    commands.add_parser("list", help="what is known")
    forgetting = commands.add_parser("forget", help="count on the machine at hand again")
    forgetting.add_argument("hardware", nargs="+", metavar="HARDWARE")
    describing = commands.add_parser("describe", help="print what this machine is (runs on the node)")
    describing.add_argument("hardware", metavar="HARDWARE")
    options = parser.parse_args(list(arguments))
    try:
        return _run(options)
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "probe":
        return _probe(options)
    if options.command == "describe":
        print(to_json(describe(options.hardware)).decode())
        return 0
    if options.command == "forget":
        missing = [name for name in options.hardware if not forget_node(ROOT, name)]
        for name in missing:
            print(f"{name}: was not known", file=sys.stderr)
        return int(bool(missing))
    known = read_nodes(ROOT)
    for node in known.values():
        print(_line(node))
    if not known:
        print("no node was asked yet: python -m pipeline.cli.nodes probe", file=sys.stderr)
    return 0


def _probe(options: argparse.Namespace) -> int:
    """Each target on its own: one that cannot be asked keeps none of the others from it."""
    site = read_site(options.profile)
    declared = _declared(Path("conf"))
    code = 0
    for hardware in options.hardware or sorted(site.hardware):
        try:
            node = probe(hardware, site, declared)
            write_node(ROOT, node)
        except KernelmillError as error:
            print(f"error: {error}", file=sys.stderr)
            code = 1
        else:
            print(_line(node), flush=True)
    return code


def _declared(conf: Path) -> dict[str, Hardware]:
    from pipeline.plan.config.compose import composer
    from pipeline.plan.config.options import OptionLoader
    from pipeline.plan.config.overrides import Overrides

    with composer(conf) as hydra:
        return OptionLoader(hydra, Overrides(choices={}, values={}), conf.parent).all_hardware()


def _line(node: Node) -> str:
    machine, facts = node.machine, node.machine.cpu.facts
    gpu = f"{machine.gpu[2]} ({machine.gpu[1]}), " if machine.gpu else ""
    return (
        f"{node.hardware}: {gpu}{facts['model']}, {facts['threads']} threads, "
        f"{int(facts['memory_bytes']) / 2**30:.0f} GiB, asked {node.created}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
