"""`kernelmill judge`: candidates from anywhere in, `verdicts.csv` out; Snakemake does the work."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.override_arguments import options_of
from pipeline.records.errors import ConfigError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _options(_: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    names = options_of(str(parameter.name))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("judge")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="verdicts.csv",
    show_default=True,
    help="Table to write.",
)
@click.option(
    "--hardware", default="local", show_default=True, shell_complete=_options, help="Option of conf/hardware."
)
@click.option(
    "--verify", default="standard", show_default=True, shell_complete=_options, help="Option of conf/verify."
)
@click.option("--cores", default="all", show_default=True, help="As for Snakemake.")
@click.option(
    "--repeat", metavar="ID", help="Repeat the call that failed, in this process, without isolation."
)
def command(folder: Path | None, repeat: str | None, out: Path, cores: str, **chosen: str) -> int:
    """Judge every candidate of a folder of problems: one verdict each.

    DIR/<problem>/problem.py has Model, get_inputs and get_init_inputs; DIR/<problem>/solutions/*.py have
    ModelNew (the format of KernelBench). DIR may also be a data set of flashinfer-bench; its traces are
    written next to the table. Exit code 0: all were judged, whatever the verdicts; 1: something was
    not.

    \b
    Examples:
      kernelmill judge problems --out verdicts.csv
      kernelmill judge problems --hardware h200 --verify paranoid
      kernelmill judge --repeat 3f0c91d2a7b4
      python -m pdb -m pipeline judge --repeat 3f0c91d2a7b4
    """
    from pipeline.execution import judging_run
    from pipeline.execution.judging_run import JudgingRequest, judge

    if folder is None and repeat is None:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param_hint="'DIR'", param_type="argument")
    if folder is not None and repeat is not None:
        raise ConfigError("expected a folder of problems or --repeat ID, got both")
    if repeat is not None:
        return judging_run.repeat(repeat)
    assert folder is not None
    return judge(JudgingRequest(folder=folder, **chosen), out=out, cores=cores)
