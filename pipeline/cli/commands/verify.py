"""`kernelmill verify`: whether one kernel is right, in seconds."""

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import (
    complete_override,
    json_option,
    option_completion,
    quiet_option,
)


@click.command("verify")
@click.argument("kernel", shell_complete=option_completion)
@click.argument("overrides", nargs=-1, metavar="[OVERRIDE]...", shell_complete=complete_override)
@click.option("--workload", default="awkward", show_default=True, shell_complete=option_completion)
@click.option("--hardware", shell_complete=option_completion, help="Default: the CPU and one GPU target.")
@click.option("--verify", default="fast", show_default=True, shell_complete=option_completion, help="Checks.")
@click.option("--all", "every", is_flag=True, help="All variants, not only the default ones.")
@quiet_option
@json_option
def command(  # noqa: PLR0913, PLR0917  (one for each option)
    kernel: str,
    overrides: tuple[str, ...],
    workload: str,
    hardware: str | None,
    verify: str,
    every: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Compile and verify one kernel: the default variant of each of its implementations.

    Kernels for a GPU that is absent run in an interpreter or emulator. Nothing is measured. Exit code 1:
    something was refused.

    \b
    Examples:
      kernelmill verify softmax
      kernelmill verify matmul --hardware cpu --workload bert_base --verify standard --all
    """
    from pipeline.execution.kernel_check import KernelCheckRequest, check_kernel, check_text
    from pipeline.records.record import to_json

    request = KernelCheckRequest(
        kernel=kernel, workload=workload, hardware=hardware, verify=verify, every=every, overrides=overrides
    )
    check = check_kernel(request, quiet=quiet or as_json)
    print(to_json(check).decode() if as_json else check_text(check), flush=True)
    return ExitCode.OK if check.passed else ExitCode.FAILED
