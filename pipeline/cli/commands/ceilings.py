"""`kernelmill ceilings`: what the device in this machine reaches."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.override_arguments import root_option

if TYPE_CHECKING:
    from pipeline.execution.machine_ceilings import Mode


@click.command("ceilings")
@click.argument("hardware", default="local")
@click.option(
    "--again", "mode", flag_value="again", help="Measure now; keep the better of old and new figures."
)
@click.option("--afresh", "mode", flag_value="afresh", help="Forget the known figures, and measure now.")
@root_option
@click.option(
    "--conf", type=click.Path(path_type=Path), default="conf", show_default=True, help="Option groups."
)
def command(hardware: str, mode: "Mode | None", root: Path, conf: Path) -> None:
    """Bandwidth by size of the data, peaks per dtype, latency of a call; known figures are reused.

    HARDWARE is a name from conf/hardware; the default is the device of this machine.

    \b
    Examples:
      kernelmill ceilings
      kernelmill ceilings h100 --again
    """
    from pipeline.execution.machine_ceilings import ceilings_text, measured

    print(ceilings_text(measured(hardware, mode or "known", root=root, conf=conf)))
