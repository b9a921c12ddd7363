"""`kernelmill bundle`: run where there is no network, and bring the results home as one file."""

import errno
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import click

from pipeline.cli.override_arguments import overrides_argument
from pipeline.execution.bundle import requirements
from pipeline.records.errors import BundleError

ROOT = Path("artifacts")
_FIXABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of the system that concern the user's disk, not a bug."""
_files = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, exists=False)
)
P = ParamSpec("P")


def _checked(modules: dict[str, str]) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Look for the libraries first; an error of the disk is one line."""

    def wrap(function: Callable[P, int]) -> Callable[P, int]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> int:
            requirements.check(modules)
            try:
                return function(*args, **kwargs)
            except OSError as error:
                if error.errno not in _FIXABLE:
                    raise
                where = f"{error.filename}: " if error.filename else ""
                raise BundleError(f"{where}{error.strerror} (the same command continues)") from error

        return call

    return wrap


@click.group("bundle")
def command() -> None:
    """Run an experiment on a machine without network and bring its results home.

    \b
    kernelmill bundle pack experiment=gpu      here: project and libraries as one file, job.pyz
    python3 job.pyz run                        there: run it, and write results.kmb
    kernelmill bundle ingest results.kmb       here: into the store, the tables, the report and MLflow
    """


@command.command("pack")
@overrides_argument
@click.option(
    "--out", type=click.Path(path_type=Path), default="job.pyz", show_default=True, help="File to write."
)
@click.option(
    "--python",
    default="{}.{}".format(*sys.version_info),
    metavar="VERSION",
    help="Python of the machine where it runs, such as 3.12; default: the version of the one that packs.",
)
@click.option("--machine", type=click.Choice(["x86_64", "aarch64"]), help="Its processor; default: as here.")
@click.option(
    "--with",
    "extras",
    multiple=True,
    metavar="LIBRARY",
    help="One more library, used only if that machine lacks it.",
)
@click.option(
    "--after",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A bundle that came from there: what it holds is not done again, also of unfinished tasks.",
)
@click.option(
    "--check", "of_device", is_flag=True, help="A job that checks the GPU there, without overrides."
)
@_checked(requirements.RECORDS)
def pack(  # noqa: PLR0913, PLR0917  (each of them is an option)
    overrides: tuple[str, ...],
    out: Path,
    python: str,
    machine: str | None,
    extras: tuple[str, ...],
    after: tuple[Path, ...],
    of_device: bool,
) -> int:
    """Write project and libraries as one file to run there.

    With --check, its `run` is `kernelmill check --device` and leaves device_check.json.

    \b
    Examples:
      kernelmill bundle pack experiment=gpu
      kernelmill bundle pack --check --out check.pyz
      kernelmill bundle pack experiment=gpu --after results.kmb --out next.pyz
    """
    from pipeline.execution.bundle import operations

    if of_device:
        if overrides or after:
            raise click.UsageError("--check takes no overrides and no --after: it runs no experiment")
        return operations.pack_check(out, python=python, machine=machine, extras=extras)
    return operations.pack(overrides, out, python=python, machine=machine, extras=extras, after=after)


@command.command("run")
@overrides_argument
@click.option(
    "--out", type=click.Path(path_type=Path), default="results.kmb", show_default=True, help="File to write."
)
@click.option("--minutes", type=float, help="Stop then, and write what is finished.")
@click.option("--with-binaries", is_flag=True, help="As far as the size allows.")
@click.option("--limit", type=float, default=16.0, show_default=True, help="Size of the file, in MiB.")
@_checked(requirements.RECORDS | requirements.STAGES)
def run(
    overrides: tuple[str, ...], out: Path, minutes: float | None, with_binaries: bool, limit: float
) -> int:
    """Run an experiment without Snakemake, and write its bundle; job.pyz run does the same.

    Exit code 3: the bundle was written, but some tasks did not finish.

    \b
    Examples:
      kernelmill bundle run experiment=smoke
      kernelmill bundle run experiment=gpu --minutes 8 --out results.kmb
    """
    from pipeline.execution.bundle import operations

    limits = operations.RunLimits(minutes=minutes, mebibytes=limit, binaries=with_binaries)
    return operations.run(overrides, out, limits, root=ROOT)


@command.command("show")
@_files
@_checked(requirements.RECORDS)
def show(files: tuple[Path, ...]) -> int:
    """Print what bundles hold.

    \b
    Examples:
      kernelmill bundle show results.kmb
      kernelmill bundle show first.kmb second.kmb
    """
    from pipeline.execution.bundle import operations

    return operations.show(files)


@command.command("ingest")
@_files
@click.option("--tracking", help="Option of conf/tracking; default: that of conf/config.yaml.")
@click.option("--replace", is_flag=True, help="Take the bundle's results even if the store has later ones.")
@_checked(requirements.RECORDS)
def ingest(files: tuple[Path, ...], tracking: str | None, replace: bool) -> int:
    """Merge bundles into the store, the tables, the report and MLflow.

    \b
    Examples:
      kernelmill bundle ingest results.kmb
      kernelmill bundle ingest results.kmb --tracking disabled
    """
    from pipeline.execution.bundle import operations

    return operations.ingest(files, ROOT, tracking=tracking, replace=replace)
