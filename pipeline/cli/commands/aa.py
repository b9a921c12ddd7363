"""`kernelmill aa`: A/A test of the measurement on this machine."""

from pathlib import Path

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import overrides_argument


@click.command("aa")
@overrides_argument
@click.option("--comparisons", default=200, show_default=True, help="Of each variant.")
@click.option("--out", type=click.Path(path_type=Path), help="All comparisons as JSON, with raw samples.")
def command(overrides: tuple[str, ...], comparisons: int, out: Path | None) -> int:
    """Measure how often a kernel is called faster or slower than itself.

    Each comparison starts both processes afresh, as two runs of a sweep would. The default variant of each
    implementation is compared with itself; every verdict other than indistinguishable is a false alarm.
    Exit code 1: something could not be measured.

    \b
    Examples:
      kernelmill aa kernel=softmax workload=bert_base hardware=cpu
      kernelmill aa kernel=softmax workload=bert_base hardware=cpu profile=standard --comparisons 50
    """
    from pipeline.execution.aa_test import compare_all, table
    from pipeline.records.record import to_json
    from pipeline.store.atomic import write_atomic

    rows = compare_all(overrides, comparisons)
    if out is not None:
        write_atomic(out, to_json(rows))
    print("\n".join(table(rows)))
    return ExitCode.FAILED if any(row.failures for row in rows) else ExitCode.OK
