"""`kernelmill plan`: what would run. Nothing is executed."""

from typing import TYPE_CHECKING

import click

from pipeline.cli.override_arguments import overrides_argument

if TYPE_CHECKING:
    from pipeline.execution.plan_listing import View


@click.command("plan")
@overrides_argument
@click.option("--variants", "view", flag_value="variants", help="List every variant.")
@click.option("--paths", "view", flag_value="paths", help="List the files that Snakemake can be asked for.")
@click.option("--json", "view", flag_value="json", help="Plan and variants as JSON.")
def command(overrides: tuple[str, ...], view: "View | None") -> None:
    """List the tasks with their variants, and what is pruned and why.

    \b
    Examples:
      kernelmill plan kernel=softmax hardware=cpu
      kernelmill plan kernel=matmul hardware=h200 --variants
    """
    from pipeline.execution.plan_listing import lines

    for line in lines(overrides, view or "summary"):
        print(line)
