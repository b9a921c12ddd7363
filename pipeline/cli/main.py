"""The command `kernelmill`: arguments in, one call into a lower room, exit code out.

Each command is a module of `commands`, imported when it is used: `kernelmill --help` imports none of them.
"""

import contextlib
import importlib
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import click

from pipeline.cli import shell_completion
from pipeline.cli.exit_codes import MEANING, ExitCode
from pipeline.cli.override_arguments import groups
from pipeline.records.errors import ConfigError, KernelmillError, suggestion

SECTIONS = {
    "Run": {
        "run": "run an experiment, or the part of it that overrides name",
        "sweep": "run every combination of listed values (Hydra multirun)",
        "plan": "list tasks, variants and what is pruned; run nothing",
    },
    "Write": {
        "new": "write a new kernel that runs at once",
    },
    "Inspect": {
        "runs": "list, compare and open tracked runs",
        "report": "make the HTML report of an experiment again",
        "ui": "open the MLflow UI",
        "space": "show or export search spaces and recorded results",
        "code": "show, compare and report machine code",
        "ceilings": "measure what this device reaches",
        "export": "write results as a data set for training",
    },
    "Verify": {
        "verify": "check one kernel in seconds, with reasons",
        "judge": "judge candidates from anywhere: one verdict each",
        "leaderboard": "rank submissions of judged candidates",
        "mcp": "serve problems to a coding agent: submit, read why, repair",
        "aa": "A/A test: how often is a kernel called faster than itself?",
    },
    "Other machines": {
        "bundle": "run where there is no network, bring results home",
        "nodes": "know the nodes of a cluster",
        "store": "exchange results with a shared store",
    },
    "Maintain": {
        "clean": "show what the store holds, remove what no result needs",
        "check": "find and remove damaged artifacts; --device: check the GPU",
        "completion": "print the completion script of a shell",
    },
}
_ELSEWHERE = {
    "completion": ("shell_completion", "command"),
    "mcp": ("commands.judge", "mcp"),
    "sweep": ("commands.run", "sweep"),
}
"""Commands without a module of their own among `commands`: module and name."""
CONTINUING = frozenset({"run", "sweep", "judge", "verify"})
"""Commands that keep each result as it is finished, and go on from there."""
STOPPED_BY_SIGTERM = frozenset({"run", "sweep", "judge"})
"""Commands with Snakemake below them, which SIGTERM stops as Ctrl-C does."""
ONE_SIGNAL_SECONDS = 1.0
"""Signals within this time are one: `timeout` sends it to the command, and then to its group."""
_HINT = "kernelmill COMMAND --help: options and examples; --exit-codes: exit codes"


class LazyGroup(click.Group):
    """Imports the module of a command when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names, in the order of the sections."""
        return [name for commands in SECTIONS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """None for a name that does not exist."""
        if cmd_name not in self.list_commands(ctx):
            return None
        place, name = _ELSEWHERE.get(cmd_name, (f"commands.{cmd_name}", "command"))
        command: click.Command = getattr(importlib.import_module(f"pipeline.cli.{place}"), name)
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Without importing anything."""
        for section, commands in SECTIONS.items():
            formatter.write(f"{section}\n")
            for name, summary in commands.items():
                formatter.write(f"  {name:<13}{summary}\n")

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Less space than click's own, so that it fits one screen."""
        formatter.write("Usage: kernelmill COMMAND [ARGUMENTS]...\n")
        formatter.write("Declare kernels; get verified, profiled, comparable results.\n\n")
        self.format_commands(ctx, formatter)
        formatter.write(f"\n{_HINT}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """An unknown command suggests the nearest name."""
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            raise click.UsageError(f"no command '{name}'{suggestion(name, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)


def _print_exit_codes(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        for code, meaning in MEANING.items():
            click.echo(f"{code.value:>4}  {meaning}")
        ctx.exit()


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"kernelmill {version('kernelmill')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.option(
    "--exit-codes",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_exit_codes,
    help="Print the exit codes.",
)
def kernelmill() -> None:
    """Declare kernels; get verified, profiled, comparable results."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; an error that a user can fix is one line on standard error."""
    shell_completion.register()
    given = sys.argv[1:] if arguments is None else list(arguments)
    with _interrupted_by_sigterm(given) as received:
        code = _run(given)
    return ExitCode.TERMINATED if received and code == ExitCode.INTERRUPTED else code


@contextlib.contextmanager
def _interrupted_by_sigterm(given: Sequence[str]) -> Iterator[list[float]]:
    """SIGTERM raises KeyboardInterrupt in the commands that it stops; when it came."""
    received: list[float] = []

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        received.append(time.monotonic())
        if len(received) == 1 or received[-1] - received[-2] > ONE_SIGNAL_SECONDS:
            raise KeyboardInterrupt

    if not {*given[:1]} & STOPPED_BY_SIGTERM or threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(given: list[str]) -> int:
    try:
        code = kernelmill.main(
            args=given or ["--help"], prog_name="kernelmill", standalone_mode=False, obj={"arguments": given}
        )
        sys.stdout.flush()
    except click.ClickException as error:
        print(_usage(error), file=sys.stderr)
        return ExitCode.USAGE
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.FAILED
    except BrokenPipeError:  # a reader that has seen enough (`… | head`) is no error
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # Python flushes once more when it ends
        return ExitCode.OK
    except (KeyboardInterrupt, click.Abort):
        kept = ": finished results are kept, the same command continues" if {*given[:1]} & CONTINUING else ""
        print(f"stopped{kept}", file=sys.stderr)
        return ExitCode.INTERRUPTED
    return code if isinstance(code, int) else ExitCode.OK


def command_line() -> str:
    """The command that runs, as one would type it."""
    arguments: list[str] = click.get_current_context().find_root().obj["arguments"]
    return shlex.join(["kernelmill", *arguments])


def _usage(error: click.ClickException) -> str:
    """In one line, with the command whose help says more; that help for a group without a command."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    text = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption) and (group := error.option_name.lstrip("-")) in groups():
        text = f"no such option '{error.option_name}': overrides have no dashes, write {group}=NAME"
    text = text[:1].lower() + text[1:]
    context: Any = getattr(error, "ctx", None)
    return f"error: {text} ({context.command_path} --help)" if context is not None else f"error: {text}"
