"""`kernelmill code`: machine code of compiled variants."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.override_arguments import root_option

if TYPE_CHECKING:
    from collections.abc import Iterable


@click.group("code")
def command() -> None:
    """Show, compare and report machine code of compiled variants.

    A variant is named by the beginning of its id, by its compile_folder, or by key=value words (kernel,
    workload, hardware, dtype, implementation, default, any tunable).
    """


@command.command("show")
@click.argument("variant", nargs=-1, required=True, metavar="WORD...")
@click.option("--lines", default=12, show_default=True, help="Source lines to list.")
@click.option("--no-code", is_flag=True, help="Facts and source lines only.")
@root_option
def show(variant: tuple[str, ...], lines: int, no_code: bool, root: Path) -> None:
    """Facts, source lines and code of one variant.

    \b
    Examples:
      kernelmill code show kernel=matmul hardware=h200 default=true
      kernelmill code show kernel=softmax hardware=cpu default=true --no-code
    """
    from pipeline.report.machine_code.code_views import code, facts

    _print(facts(root, variant, lines))
    if not no_code:
        _print(code(root, variant))


@command.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--summary", is_flag=True, help="Facts and source lines only.")
@root_option
def diff(first: str, second: str, summary: bool, root: Path) -> None:
    """How two variants differ; each is given as words in one argument.

    \b
    Examples:
      kernelmill code diff "hardware=h200 num_stages=1" "hardware=h200 num_stages=3"
      kernelmill code diff 3f2a 9c41 --summary
    """
    from pipeline.report.machine_code.code_views import difference, difference_summary

    _print((difference_summary if summary else difference)(root, first, second))


@command.command("report")
@click.argument("variant", nargs=-1, required=True, metavar="WORD...")
@click.option("--diff", "pair", nargs=2, metavar="A B", help="A difference to show as an example.")
@click.option("--made-by", help="Command to name on the first line, if more than this one made it.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write (default: the terminal).")
@root_option
def report(
    variant: tuple[str, ...], pair: tuple[str, str] | None, made_by: str | None, out: Path | None, root: Path
) -> None:
    """Markdown over all variants that fit, one for each target.

    \b
    Examples:
      kernelmill code report kernel=matmul default=true --out report.md
      kernelmill code report kernel=softmax default=true
    """
    from pipeline.cli.main import command_line
    from pipeline.report.machine_code.code_views import Page

    page = Page(root=root, words=variant, pair=pair, command=made_by or command_line())
    _print(page.written(out) if out else page.lines())


def _print(lines: "Iterable[str]") -> None:
    for line in lines:
        print(line)
