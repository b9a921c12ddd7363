"""`kernelmill judge` and `kernelmill mcp`: candidates from files or from a coding agent in, verdicts out."""

import importlib
import tempfile
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from pipeline.cli.override_arguments import json_option, option_completion, quiet_option, root_option
from pipeline.records.errors import ConfigError, KernelmillError, ToolchainError, installation

AT_LEAST_1 = click.IntRange(min=1)
POSITIVE = click.FloatRange(min=0, min_open=True)
HARDWARE = click.option(
    "--hardware",
    default="local",
    show_default=True,
    shell_complete=option_completion,
    help="Option of conf/hardware.",
)
VERIFY = click.option(
    "--verify",
    default="standard",
    show_default=True,
    shell_complete=option_completion,
    help="Option of conf/verify.",
)


def _problem_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the problems of the folder, if it has been typed before."""
    folder = context.params.get("folder")
    if folder is None:
        return []
    from pipeline.interop.problem_sets.problem_set_registry import convert_folder
    from pipeline.verify.candidates.kernelbench import scan

    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = convert_folder(folder, Path(scratch))
        names = [each.name for each in (scan(folder) if found is None else found.problems)]
    except KernelmillError:  # the command itself will say it
        return []
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
@HARDWARE
@VERIFY
@click.option(
    "--measure",
    is_flag=True,
    help="Time what passes, against eager PyTorch and torch.compile, and add it to the leaderboard.",
)
@click.option(
    "--profile",
    default=None,
    show_default="candidates",
    shell_complete=option_completion,
    help="Option of conf/profile; with --measure.",
)
@click.option(
    "--submission",
    metavar="NAME",
    show_default="with --measure the folder's name, else none",
    help="Add the candidates to the leaderboard under this name, and log them to MLflow.",
)
@click.option(
    "--tracking",
    default="mlflow",
    show_default=True,
    shell_complete=option_completion,
    help="Option of conf/tracking, for a submission.",
)
@click.option(
    "--copy-of-model",
    "candidates",
    flag_value="copy_of_model",
    default="given",
    help="Judge the problems: with a copy of their own Model in place of all candidates.",
)
@click.option(
    "--only",
    metavar="PATTERN",
    multiple=True,
    shell_complete=_problem_names,
    help="Only problems or candidates (problem/candidate) that match; several times: any of them.",
)
@click.option("--cores", default="all", show_default=True, help="As for Snakemake.")
@click.option(
    "--repeat", metavar="ID", help="Repeat the call that failed, in this process, without isolation."
)
@quiet_option
@json_option
def command(  # noqa: PLR0913, PLR0917  (one for each option)
    folder: Path | None,
    repeat: str | None,
    out: Path,
    cores: str,
    submission: str | None,
    tracking: str,
    only: tuple[str, ...],
    **chosen: Any,
) -> int:
    """Judge every candidate of a folder of problems: one verdict each.

    DIR/<problem>/problem.py has Model, get_inputs and get_init_inputs; DIR/<problem>/solutions/*.py have
    ModelNew. DIR may also be a checkout of KernelBench, a data set of flashinfer-bench, or a folder of
    another project that docs/guide/problem_sets.md lists, as it is. Exit code 0: all were judged,
    whatever the verdicts; 1: something was not, or nothing could be.

    \b
    Examples:
      kernelmill judge problems --out verdicts.csv
      kernelmill judge problems --measure --profile thorough
      kernelmill judge problems --hardware h200 --verify paranoid
      kernelmill judge problems --measure --submission my_model
      kernelmill judge KernelBench/runs/first
      kernelmill judge KernelBench/runs/first --only 'level1/12_*' --only '*/sample_0'
      kernelmill judge KernelBench --copy-of-model
      kernelmill judge problems --json | python -m json.tool
      kernelmill judge --repeat 3f0c91d2a7b4
      python -m pdb -m pipeline judge --repeat 3f0c91d2a7b4
    """
    from pipeline.execution import judging_run
    from pipeline.execution.judging_run import Output, judge
    from pipeline.plan.judging import JudgingRequest

    if folder is None and repeat is None:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param_hint="'DIR'", param_type="argument")
    if folder is not None and repeat is not None:
        raise ConfigError("expected a folder of problems or --repeat ID, got both")
    if repeat is not None:
        return judging_run.repeat(repeat)
    assert folder is not None
    measure, profile = chosen.pop("measure"), chosen.pop("profile")
    if profile is not None and not measure:
        raise ConfigError("--profile: needs --measure")
    timed = (profile or judging_run.PROFILE) if measure else None
    quiet, as_json = chosen.pop("quiet"), chosen.pop("as_json")
    output: Output = "json" if as_json else "quiet" if quiet else "progress"
    if only and submission is not None:
        raise ConfigError("--only: a part of the candidates is no submission, leave --submission out")
    name = submission or (folder.absolute().name if measure and not only else None)
    request = JudgingRequest(folder=folder, profile=timed, only=only, **chosen)
    submitted = None if name is None else (name, tracking)
    return judge(request, out=out, cores=cores, output=output, submitted=submitted)


@click.command("mcp")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@HARDWARE
@VERIFY
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
def mcp(folder: Path, root: Path, tracking: str, client: str | None, **chosen: Any) -> None:
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
        importlib.import_module("mcp")
    except ImportError:
        raise ToolchainError(f"kernelmill mcp needs the package mcp: {installation('mcp')}") from None
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
