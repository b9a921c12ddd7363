"""`kernelmill sweep`: every combination of listed values, as one run of Snakemake; Hydra's multirun."""

import click

from pipeline.cli.commands.run import RunOutput, start
from pipeline.cli.override_arguments import RAW, OverridesCommand, json_option, quiet_option, raw_argument


@click.command("sweep", cls=OverridesCommand, context_settings=RAW)
@raw_argument
@quiet_option
@json_option
@click.pass_context
def command(ctx: click.Context, arguments: tuple[str, ...], quiet: bool, as_json: bool) -> int:
    """Run every combination of the listed values; each is a job with an objective.

    Values are listed as in Hydra: a,b,c, choice(a,b), range(1,65,16), glob(soft*), interval(0,1). A sweeper
    such as hydra/sweeper=optuna chooses the combinations. All jobs are one run of Snakemake, whose arguments
    follow --.

    \b
    Examples:
      kernelmill sweep kernel=softmax,rms_norm workload=bert_base hardware=cpu
      kernelmill sweep kernel=softmax hardware=cpu "workload.dimensions.tokens=range(1,65,16)" -- --dry-run
    """
    return start(("--multirun", *arguments), ctx.obj["passed_on"], RunOutput(quiet=quiet, json=as_json))
