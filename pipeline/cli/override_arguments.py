"""Arguments that several commands take: overrides with Hydra's flags and completion from conf/, `--root`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from pipeline.records.errors import ConfigError

CONF = Path("conf")
HYDRA_FLAGS = (
    *("--hydra-help", "--cfg", "-c", "--resolve", "--package", "-p", "--info", "-i", "--multirun", "-m"),
    *("--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd", "--experimental-rerun"),
)
"""Answered by Hydra: `--cfg job` shows the configuration, `--info defaults-tree` where it comes from."""
_KEY = re.compile(r"^([a-z]\w*):", re.MULTILINE)
_SETTINGS = ("search", "verify", "profile", "mutation", "tracking", "objective")
"""Groups whose values people set on the command line."""


class OverridesCommand(click.Command):
    """Takes overrides and Hydra's flags as they are, and what follows `--` for Snakemake.

    `ctx.obj["passed_on"]` holds what follows `--`; the parameter `arguments` the rest.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`, and refuse unknown flags."""
        at = args.index("--") if "--" in args else len(args)
        ctx.ensure_object(dict)["passed_on"] = args[at + 1 :]
        ours = args[:at]
        options = [name for parameter in self.get_params(ctx) for name in parameter.opts]
        known = [*options, *HYDRA_FLAGS]
        for each in ours:
            name = each.split("=")[0]
            if name.startswith("-") and name not in known and not ctx.resilient_parsing:
                raise click.NoSuchOption(name, possibilities=_near(name, known), ctx=ctx)
        return super().parse_args(ctx, ours)


def _near(name: str, known: list[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(name, known, n=1)


def complete_override(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Groups, keys of their options, and names of options; from file names, so that it takes milliseconds."""
    return [CompletionItem(text) for text in _candidates(incomplete) if text.startswith(incomplete)]


def option_completion(_: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the options of the group that a parameter is called after."""
    return [CompletionItem(name) for name in options_of(str(parameter.name)) if name.startswith(incomplete)]


def _candidates(incomplete: str) -> Iterator[str]:
    prefix = incomplete[:1] if incomplete[:1] in ("+", "~") else ""
    key, separator, value = incomplete[len(prefix) :].partition("=")
    if separator:
        chosen = value.rpartition(",")
        before = f"{prefix}{key}={chosen[0]}{chosen[1]}"
        yield from (f"{before}{name}" for name in options_of(key))
    elif "." in key:
        group = key.partition(".")[0]
        yield from (f"{prefix}{group}.{name}=" for name in _keys_of(group))
    else:
        yield from (f"{prefix}{group}=" for group in groups())
        if any(group == key for group in _SETTINGS):
            yield f"{prefix}{key}."


def groups() -> list[str]:
    """Folders of conf/ that hold options."""
    return sorted(path.name for path in CONF.glob("*") if any(path.glob("*.yaml")))


def options_of(group: str) -> list[str]:
    """Names of the options of a group; none where there is no such group."""
    if not re.fullmatch(r"[\w/]+", group):
        return []
    from pipeline.plan.config.groups import options

    return list(options(CONF, group)) if CONF.is_dir() else []


def _keys_of(group: str) -> list[str]:
    if group not in groups():
        return []
    texts = (path.read_text(errors="replace") for path in (CONF / group).rglob("*.yaml"))
    return sorted({name for text in texts for name in _KEY.findall(text)} - {"defaults", "name"})


overrides_argument = click.argument(
    "overrides", nargs=-1, metavar="[OVERRIDE]...", shell_complete=complete_override
)
"""Overrides and nothing else."""
raw_argument = click.argument(
    "arguments", nargs=-1, metavar="[OVERRIDE]... [-- SNAKEMAKE ARGUMENT...]", type=click.UNPROCESSED,
    shell_complete=complete_override,
)  # fmt: skip
"""Overrides mixed with Hydra's flags."""
root_option = click.option(
    "--root", type=click.Path(path_type=Path), default="artifacts", show_default=True, help="Artifact store."
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress; results and errors alone.")
json_option = click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output.")
RAW: dict[str, Any] = {"ignore_unknown_options": True}


def check_exists(root: Path) -> None:
    """Before a lock is taken there, which would make the folder of a path that was mistyped.

    Raises
    ------
    ConfigError
        There is no such folder.
    """
    if not root.is_dir():
        raise ConfigError(f"--root {root}: there is no such folder")


def groups_text() -> str:
    """The groups with their options, for `--help`."""
    lines = [f"  {group}: {', '.join(options_of(group))}" for group in groups()]
    return "\n".join(["\b", "Options (group=option):", *lines]) if lines else ""
