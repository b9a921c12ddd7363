"""`kernelmill clean`: what the artifact store holds, and what may go."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import check_exists, json_option, root_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.execution.store_cleaning import StoreContents, StoredItem


@click.command("clean")
@click.option(
    "--older-than", default=0.0, metavar="DAYS", type=click.FloatRange(min=0), help="Only what is older."
)
@click.option("--yes", "-y", is_flag=True, help="Remove without asking.")
@json_option
@root_option
def command(older_than: float, yes: bool, as_json: bool, root: Path) -> int:
    """Show what the artifact store holds, and remove what no result refers to.

    Results are experiments with tables and judged problems; what they refer to stays. In a terminal the
    command asks before it removes; elsewhere nothing is removed without --yes. make clean removes everything.

    \b
    Examples:
      kernelmill clean
      kernelmill clean --older-than 30 --yes
    """
    from pipeline.execution.store_cleaning import find_contents, remove_items, size_text
    from pipeline.store.atomic import is_writable
    from pipeline.store.run_lock import take_lock

    check_exists(root)
    # A look at what another user's run left needs no lock; what removes anything does.
    looks = not yes and not is_writable(root)
    with contextlib.nullcontext() if looks else take_lock(root / ".lock"):
        contents = find_contents(root)
        chosen = contents.removable(older_than)
        size = size_text(sum(each.bytes for each in chosen))
        if yes:
            remove_items(chosen)
            _show(find_contents(root), older_than, chosen, as_json=as_json)
        else:
            _show(contents, older_than, [], as_json=as_json)
        if not chosen:
            print("nothing to remove", file=sys.stderr)
            return ExitCode.OK
        if looks:
            print(f"{root}: not writable: nothing can be removed", file=sys.stderr)
            return ExitCode.OK
        question = f"Remove {len(chosen):,} items, {size}?"
        if not yes:
            if not (sys.stdin.isatty() and sys.stdout.isatty() and click.confirm(question)):
                print(
                    f"{len(chosen):,} items, {size}: nothing was removed (--yes removes them)",
                    file=sys.stderr,
                )
                return ExitCode.OK
            remove_items(chosen)
    print(f"removed {len(chosen):,} items, {size}", file=sys.stderr)
    return ExitCode.OK


def _show(
    contents: "StoreContents", older_than: float, removed: "Sequence[StoredItem]", *, as_json: bool
) -> None:
    """What there is now, as a table or as JSON with what was removed."""
    from pipeline.execution.run_results import aligned
    from pipeline.execution.store_cleaning import contents_rows
    from pipeline.records.record import to_json

    if as_json:
        print(to_json({"items": contents.items, "removed": [each.path for each in removed]}).decode())
        return
    for line in aligned(contents_rows(contents, older_than), indent=0):
        print(line)
