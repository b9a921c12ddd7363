"""`kernelmill mcp`: problems for coding agents, served over standard input and output."""

from pathlib import Path
from typing import Any

import click

from pipeline.cli.override_arguments import option_completion, root_option
from pipeline.records.errors import ToolchainError

AT_LEAST_1 = click.IntRange(min=1)
POSITIVE = click.FloatRange(min=0, min_open=True)


@click.command("mcp")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--hardware",
    default="local",
    show_default=True,
    shell_complete=option_completion,
    help="Option of conf/hardware.",
)
@click.option(
    "--verify",
    default="standard",
    show_default=True,
    shell_complete=option_completion,
    help="Option of conf/verify.",
)
@click.option(
    "--tracking",
    default="disabled",
    show_default=True,
    shell_complete=option_completion,
    help="Option of conf/tracking: every attempt is a run.",
)
@click.option(
    "--client", metavar="NAME", help="Whose history and limits (default: as the client names itself)."
)
@click.option("--calls", type=AT_LEAST_1, help="Submissions of a client, at most.")
@click.option("--seconds", type=POSITIVE, help="Seconds of judging of a client, at most.")
@click.option(
    "--seconds-per-call",
    type=POSITIVE,
    default=600.0,
    show_default=True,
    help="Until a call ends without a verdict.",
)
@click.option("--price", type=POSITIVE, help="Of a second of judging.")
@click.option("--budget", type=POSITIVE, help="Of a client, in the currency of --price.")
@root_option
def command(folder: Path, root: Path, tracking: str, client: str | None, **chosen: Any) -> None:
    """Serve a folder of problems to a coding agent, which judges its kernels through tools.

    An agent's program starts this command and talks to it by the Model Context Protocol. DIR is a folder as
    `kernelmill judge` takes it. Verdicts are those of `kernelmill judge` and share its store; attempts are
    kept per client. See docs/guide/agents.md.

    \b
    Examples:
      kernelmill mcp problems
      kernelmill mcp problems --client alice --calls 50 --price 0.001 --budget 0.5
    """
    if chosen["budget"] is not None and chosen["price"] is None:
        raise click.UsageError("--budget needs --price")
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise ToolchainError("kernelmill mcp needs the package mcp: pip install 'kernelmill[mcp]'") from None
    from pipeline.execution.agents.agent_service import ClientLimits, ServiceOptions
    from pipeline.execution.agents.mcp_server import serve

    hardware, verify = chosen.pop("hardware"), chosen.pop("verify")
    price = chosen.pop("price") or 0.0
    options = ServiceOptions(
        folder=folder.absolute(),
        hardware=hardware,
        verify=verify,
        store=root,
        limits=ClientLimits(price=price, **chosen),
    )
    serve(options, client=client, tracking=tracking)
