"""`kernelmill store`: the store that checkouts share. A run reads and writes it by itself."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.exit_codes import ExitCode
from pipeline.cli.override_arguments import overrides_argument, root_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.execution.store_sync import StoreSync

_store = click.option("--store", metavar="PATH|URL", help="The shared store (default: $KERNELMILL_STORE).")


@click.group("store")
def command() -> None:
    """Exchange results with a store that several checkouts or machines share.

    The store is --store or $KERNELMILL_STORE: a path (/shared/kernelmill) or a URL of fsspec
    (s3://bucket/kernelmill).
    """


def _sync(store: str | None, root: Path) -> "StoreSync":
    from pipeline.execution.store_sync import StoreSync

    return StoreSync(store, root)


def _finish(sync: "StoreSync", lines: "Iterable[str]") -> int:
    for line in lines:
        print(line)
    return ExitCode.FAILED if sync.failed else ExitCode.OK


@command.command("status")
@_store
@root_option
def status(store: str | None, root: Path) -> int:
    """Count what is here and what is there.

    \b
    Examples:
      kernelmill store status
      kernelmill store status --store /shared/kernelmill
    """
    sync = _sync(store, root)
    return _finish(sync, sync.status())


@command.command("push")
@_store
@root_option
def push(store: str | None, root: Path) -> int:
    """Upload everything that is here and not there.

    \b
    Examples:
      kernelmill store push
      kernelmill store push --store s3://bucket/kernelmill
    """
    sync = _sync(store, root)
    return _finish(sync, sync.push())


@command.command("pull")
@overrides_argument
@click.option("--all", "everything", is_flag=True, help="Everything, not only what a plan needs.")
@_store
@root_option
def pull(overrides: tuple[str, ...], everything: bool, store: str | None, root: Path) -> int:
    """Download what exists there for a plan.

    \b
    Examples:
      kernelmill store pull kernel=softmax
      kernelmill store pull --all
    """
    if everything and overrides:
        raise click.UsageError("--all takes no overrides")
    sync = _sync(store, root)
    return _finish(sync, sync.pull_all() if everything else sync.pull(overrides))


@command.command("check")
@_store
@root_option
def check(store: str | None, root: Path) -> int:
    """Read everything there, and remove what is damaged.

    \b
    Examples:
      kernelmill store check
      kernelmill store check --store /shared/kernelmill
    """
    sync = _sync(store, root)
    return _finish(sync, sync.check())
