"""`kernelmill ui`: the MLflow UI."""

from pathlib import Path

import click

from pipeline.cli.override_arguments import root_option

PORT = 5000


@click.command("ui")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=PORT, show_default=True, help="Port on loopback."
)
@root_option
def command(port: int, root: Path) -> int:
    """Open the MLflow UI over the embedded store, on loopback, and print links to the views of the last run.

    Tasks of earlier runs are linked as well. If results went to an MLflow server, its address is printed and
    nothing is started.

    \b
    Examples:
      kernelmill ui
      kernelmill ui --port 5001
    """
    from pipeline.track.mlflow_ui import start

    return start(port=port, root=root)
