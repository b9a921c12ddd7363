"""`kernelmill judge`: candidates from anywhere in, `verdicts.csv` out; Snakemake does the work."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.override_arguments import options_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _options(_: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    names = options_of(str(parameter.name))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command("judge")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
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
def command(folder: Path, out: Path, hardware: str, verify: str, cores: str) -> int:
    """Judge every candidate of a folder of problems: one verdict each.

    DIR/<problem>/problem.py has Model, get_inputs and get_init_inputs; DIR/<problem>/solutions/*.py have
    ModelNew (the format of KernelBench). DIR may also be a data set of flashinfer-bench; its traces are
    written next to the table. Exit code 0: all were judged, whatever the verdicts; 1: something was
    not.

    \b
    Examples:
      kernelmill judge problems --out verdicts.csv
      kernelmill judge problems --hardware h200 --verify paranoid
    """
    from pipeline.execution.judging_run import JudgingRequest, judge

    return judge(JudgingRequest(folder=folder, hardware=hardware, verify=verify), out=out, cores=cores)
