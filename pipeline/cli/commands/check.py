"""`kernelmill check`: the whole artifact store, compared with what was written."""

from pathlib import Path

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import root_option


@click.command("check")
@root_option
def command(root: Path) -> int:
    """Read everything under artifacts/ and remove what is damaged; the next run makes it again.

    A run checks what it uses; this checks all. It waits for a run in this checkout to finish. Exit code 1:
    something was damaged.

    \b
    Examples:
      kernelmill check
      kernelmill check --root artifacts
    """
    from pipeline.execution.recovery import check_store
    from pipeline.store.run_lock import take_lock

    with take_lock(root / ".lock"):
        entries, bad = check_store(root)
    print(f"{entries} store entries, {bad} damaged or missing" + ("; run again" if bad else ""))
    return ExitCode.FAILED if bad else ExitCode.OK
