"""`kernelmill nodes`: nodes of a cluster that this checkout's plans count on."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import options_of
from pipeline.records.errors import KernelmillError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PROFILE = Path("workflows/profiles/slurm")
ROOT = Path("artifacts")


def _targets(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in options_of("hardware") if name.startswith(incomplete)]


@click.group("nodes")
def command() -> None:
    """Ask the nodes of a cluster what they are, list them, forget them.

    Plans then count on these nodes instead of this machine. See docs/guide/clusters.md.
    """


@command.command("probe")
@click.argument("hardware", nargs=-1, shell_complete=_targets)
@click.option(
    "--profile", type=click.Path(path_type=Path), default=PROFILE, show_default=True, help="Of Snakemake."
)
def probe(hardware: tuple[str, ...], profile: Path) -> int:
    """Ask a node of each target (default: all of the site), with the options of its jobs.

    A probe waits in the queue. A target that cannot be asked does not keep the others from being asked.

    \b
    Examples:
      kernelmill nodes probe
      kernelmill nodes probe h200 --profile workflows/profiles/slurm
    """
    from pipeline.execution.cluster import probing
    from pipeline.execution.cluster.site import read_site
    from pipeline.plan.cluster_nodes import write_node
    from pipeline.plan.config.options import declared_hardware

    site = read_site(profile)
    declared = declared_hardware(Path("conf"))
    code = ExitCode.OK
    for name in hardware or sorted(site.hardware):
        try:
            node = probing.probe(name, site, declared)
            write_node(ROOT, node)
        except KernelmillError as error:
            print(f"error: {error}", file=sys.stderr)
            code = ExitCode.FAILED
        else:
            print(probing.line(node), flush=True)
    return code


@command.command("list")
def listing() -> None:
    """List the known nodes.

    \b
    Examples:
      kernelmill nodes list
      kernelmill nodes list | grep h200
    """
    from pipeline.execution.cluster.probing import line
    from pipeline.plan.cluster_nodes import read_nodes

    known = read_nodes(ROOT)
    for node in known.values():
        print(line(node))
    if not known:
        print("no node was asked yet: kernelmill nodes probe", file=sys.stderr)


@command.command("forget")
@click.argument("hardware", nargs=-1, required=True, shell_complete=_targets)
def forget(hardware: tuple[str, ...]) -> int:
    """Count on this machine again.

    \b
    Examples:
      kernelmill nodes forget h200
      kernelmill nodes forget h200 mi300x
    """
    from pipeline.plan.cluster_nodes import forget_node

    missing = [name for name in hardware if not forget_node(ROOT, name)]
    for name in missing:
        print(f"{name}: was not known", file=sys.stderr)
    return ExitCode.FAILED if missing else ExitCode.OK


@command.command("describe", hidden=True)
@click.argument("hardware")
def describe(hardware: str) -> None:
    """Print what this machine is; `probe` runs it on the node.

    \b
    Examples:
      kernelmill nodes describe h200
      kernelmill nodes describe cpu
    """
    from pipeline.execution.cluster.probing import describe as described
    from pipeline.records.record import to_json

    print(to_json(described(hardware)).decode())
