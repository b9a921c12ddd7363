"""`kernelmill check`: the whole artifact store, compared with what was written; or the path to the device."""

from pathlib import Path

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import check_exists, root_option

REPORT = "device_check.json"


@click.command("check")
@root_option
@click.option("--device", "of_device", is_flag=True, help="Check the path to the GPU instead of the store.")
@click.option("--out", type=click.Path(path_type=Path), help=f"With --device: file to write.  [{REPORT}]")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="With --device: the lines whose name matches, such as 'judge, *'. May be given more than once.",
)
def command(root: Path, of_device: bool, out: Path | None, only: tuple[str, ...]) -> int:
    """Read everything under artifacts/ and remove what is damaged; the next run makes it again.

    A run checks what it uses; this checks all. It waits for a run in this checkout to finish. Exit code 1:
    something was damaged.

    With --device: what of the path to this machine's GPU works, from the driver to the profiler, and why the
    rest does not; the store is left alone. Exit code 1: something failed; what is absent did not.

    \b
    Examples:
      kernelmill check
      kernelmill check --root artifacts
      kernelmill check --device --only 'softmax, *' --out device_check.json
    """
    if of_device:
        return _check_device(out or Path(REPORT), only)
    if out is not None or only:
        raise click.UsageError("--out and --only belong to --device, which is missing")
    from pipeline.execution.recovery import check_store
    from pipeline.store.run_lock import take_lock

    check_exists(root)
    with take_lock(root / ".lock"):
        entries, bad = check_store(root)
    print(f"{entries} store entries, {bad} damaged or missing" + ("; run again" if bad else ""))
    return ExitCode.FAILED if bad else ExitCode.OK


def _check_device(out: Path, only: tuple[str, ...]) -> int:
    from pipeline.execution.bundle import requirements

    requirements.check(requirements.RECORDS | requirements.STAGES)
    from pipeline.execution.device_check.device_checking import check_device

    return ExitCode.FAILED if check_device(out, only).failed else ExitCode.OK
