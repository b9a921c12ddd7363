"""`kernelmill space`: search spaces, declared here or recorded by other tools."""

from pathlib import Path

import click

from pipeline.cli.override_arguments import complete_override, root_option


@click.group("space")
def command() -> None:
    """Show search spaces, and exchange them with other tools."""


@command.command("show")
@click.argument("what", nargs=-1, required=True, metavar="FILE|OVERRIDE...", shell_complete=complete_override)
def show(what: tuple[str, ...]) -> None:
    """Count the points of a space, what each rule excludes, and what was measured there.

    FILE is a T1, T4 or cache file of Kernel Tuner, plain or gzip; given T1 and results together, it reports
    how much of the space the results cover. OVERRIDE selects declared spaces, as for kernelmill run.

    \b
    Examples:
      kernelmill space show kernel=matmul workload=bert_base hardware=cpu optimization=full
      kernelmill space show hotspot.T1.json hotspot_A100.json.gz
    """
    from pipeline.execution.space_summary import describe

    for line in describe(what):
        print(line)


@command.command("export")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="Folder to write to."
)
@click.option("--experiment", metavar="NAME", help="One experiment, by its name or key (default: all).")
@root_option
def export(out: Path, experiment: str | None, root: Path) -> None:
    """Write own results as T4 files, the format of the auto-tuning benchmark hub.

    \b
    Examples:
      kernelmill space export --out t4
      kernelmill space export --out t4 --experiment default
    """
    from pipeline.execution.space_summary import export_results

    for line in export_results(root, out, experiment):
        print(line)
