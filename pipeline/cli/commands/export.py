"""`kernelmill export`: results as a data set for training models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import click

from pipeline.cli.override_arguments import root_option
from pipeline.records.errors import ConfigError

Form = Literal["jsonl", "parquet"]


@click.command("export")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="Folder to write."
)
@root_option
@click.option("--experiment", metavar="NAME", help="One experiment, by name or key (default: all).")
@click.option("--format", "form", type=click.Choice(get_args(Form)), default="jsonl", show_default=True)
@click.option("--failures", is_flag=True, help="With variants that did not verify, and the reasons.")
@click.option("--unlicensed", is_flag=True, help="With texts whose licence is unknown.")
@click.option(
    "--declare", multiple=True, metavar="WRITER=LICENCE", help="Licence of the sources of a search."
)
def command(  # noqa: PLR0913, PLR0917  (one for each option)
    out: Path,
    root: Path,
    experiment: str | None,
    form: Form,
    failures: bool,
    unlicensed: bool,
    declare: tuple[str, ...],
) -> None:
    """Write reference, kernel, feedback and trace of every verified variant as a data set.

    The folder holds rows, pairs (one problem on two platforms), files (what sources include), schema.json and
    a card (README.md). A text without a licence is left out unless --unlicensed is given. See
    docs/guide/data_export.md.

    \b
    Examples:
      kernelmill export --out dataset
      kernelmill export --out dataset --format parquet --failures
    """
    from pipeline.cli.main import command_line
    from pipeline.interop.dataset.dataset_export import ExportSelection, export
    from pipeline.interop.dataset.source_texts import Licensing
    from pipeline.performance.quantities import counted
    from pipeline.plan.config.options import declared_kernels

    wanted = ExportSelection(
        root=str(root),
        out=str(out),
        experiment=experiment,
        form=form,
        failures=failures,
        licensing=Licensing(unlicensed=unlicensed, declared=_declared(declare)),
        command=command_line(),
    )
    tables = export(wanted, declared_kernels(Path.cwd() / "conf"), Path.cwd())
    made = {"row": tables.rows, "pair": tables.pairs, "file": tables.files, "attempt": tables.attempts}
    print(f"{out}: {', '.join(counted(count, what) for what, count in made.items())}")
    left_out = {
        "that did not verify": counted(tables.left_out, "variant"),
        "that were recorded elsewhere": counted(tables.replayed, "variant"),
        "that came to no variant": counted(tables.sourceless, "proposal"),
        "that were planned but have not finished": counted(tables.unfinished, "task"),
    }
    print(f"left out  {', '.join(f'{count} {what}' for what, count in left_out.items())}")
    print(f"card      {out / 'README.md'}")


def _declared(lines: Sequence[str]) -> dict[str, str]:
    from pipeline.interop.dataset.attempt_rows import WRITER
    from pipeline.search.strategy_registry import strategy, strategy_names

    writers = [*(name for name in strategy_names() if strategy(name).write is not None), WRITER]
    found = {}
    for line in lines:
        name, separator, licence = line.partition("=")
        if not separator or not licence or name not in writers:
            known = ", ".join(writers)
            raise ConfigError(f"--declare {line}: expected WRITER=LICENCE, the writer one of {known}")
        found[name] = licence
    return found
