"""Hook of MkDocs: writes the pages of `reference/` from the code when the site is built, nothing to disk."""

import ast
import functools
import importlib
import inspect
import re
import textwrap
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

CONF = Path("conf")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, write in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=write()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Blocks of recipes name the file that they are (```python path): shown as the block's title."""
    return re.sub(r"^```(\w+) ([^\s=]+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A build reads the code of this checkout; its folder must be the current one."""
    if not CONF.is_dir():
        raise SystemExit("conf/ is not here: run mkdocs in the repository's root")
    return config


# Configuration: one schema per group of conf/.


def configuration() -> str:
    """Keys of every group: type, default, meaning."""
    from pipeline.plan.config.groups import GROUPS

    lines = [
        """# Configuration

Each folder of `conf/` is a group, each YAML file in it an option. The tables list the keys of each group.
A key without a default is required. An unknown key, a wrong type or a missing value is an error that names
the file and the key. Override a value with `group.key=value`.
"""
    ]
    for group, schema in GROUPS.items():
        lines += [f"## {group}", "", *_describe(schema), ""]
        lines += ["| option | description |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(text)} |" for name, text in _options(group)]
        lines += [""]
        for nested in _nested(schema):
            lines += [f"### {nested.__name__} {{ #{group}-{nested.__name__.lower()} }}", ""]
            lines += [*_describe(nested), ""]
    return "\n".join(lines)


def _describe(schema: type[msgspec.Struct]) -> list[str]:
    meanings = _field_texts(schema)
    lines = [_summary(schema), "", "| key | type | default | meaning |", "|---|---|---|---|"]
    for field in msgspec.structs.fields(schema):
        meaning = re.sub(r"\bNone\b", "null", _cell(meanings.get(field.name, "")))
        lines.append(f"| `{field.encode_name}` | {_type(field.type)} | {_default(field)} | {meaning} |")
    return lines


def _nested(schema: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    found: dict[type[msgspec.Struct], None] = {}

    def visit(annotation: Any) -> None:
        new = annotation is not schema and annotation not in found
        if new and isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            found[annotation] = None
            for field in msgspec.structs.fields(annotation):
                visit(field.type)
        for argument in typing.get_args(annotation):
            visit(argument)

    for field in msgspec.structs.fields(schema):
        visit(field.type)
    return list(found)


def _type(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is type(None):
        return "null"
    if origin is Literal:
        return " \\| ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " \\| ".join(dict.fromkeys(_type(each) for each in arguments))
    if origin in (tuple, list):
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_type(arguments[1])}"
    return getattr(annotation, "__name__", str(annotation))


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None:
        return "null"
    if isinstance(value, msgspec.Struct):
        return "see below"
    return f"`{msgspec.json.encode(value).decode()}`".replace("|", "\\|")


@functools.cache
def _field_texts(owner: type) -> dict[str, str]:
    """The docstring below each field of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, str] = {}
    for before, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
                texts[before.target.id] = str(after.value.value)
            elif isinstance(before, ast.Assign) and isinstance(before.targets[0], ast.Name):
                texts[before.targets[0].id] = str(after.value.value)
    return texts


def _options(group: str) -> Iterable[tuple[str, str]]:
    for path in sorted((CONF / group).glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        content = content.get(group, content) if isinstance(content.get(group), dict) else content
        yield path.stem, str(content.get("description", ""))


# Outcomes, columns, strategies, backends.


def outcomes() -> str:
    """Every outcome with its meaning."""
    from pipeline.records.outcome import Outcome

    texts = OUTCOMES | _field_texts_of_enum(Outcome)
    lines = [
        "# Outcomes",
        "",
        "How a stage ended for one variant. Two causes with different fixes have two outcomes.",
        "",
        "| outcome | meaning |",
        "|---|---|",
        *(f"| `{outcome}` | {_cell(texts.get(outcome.value, ''))} |" for outcome in Outcome),
    ]
    return "\n".join(lines)


OUTCOMES = {
    "passed": "The stage succeeded.",
    "passed_reduced": "A candidate is correct on reduced sizes, or until time ran out; no more was tried.",
    "pruned": "Excluded by a constraint, or by `search.prune`.",
    "compile_error": "The compiler rejected the source.",
    "launch_error": "The kernel could not be started, or refused the call.",
    "timeout": "It did not end within the time limit.",
    "crashed": "Its process ended with a signal or an unexpected exit code.",
    "out_of_memory": "It exceeded its memory limit, or the device's memory.",
    "output_limit": "It printed or wrote more than the limit.",
    "wrong_shape": "An output has another shape.",
    "wrong_dtype": "An output has another dtype.",
    "wrong_value": "An element is beyond its error bound.",
    "unwritten_output": "Elements of an output were never written.",
    "out_of_bounds": "It wrote or read outside its tensors.",
    "input_mutated": "It changed an input.",
    "input_reused": "Its outputs are correct, but it overwrites an input.",
    "nondeterministic": "Equal inputs gave different results, or programs race for an element.",
    "tampered": "It changed the harness, or its own kernels did not do the work.",
    "unstable_timing": "The measurement was too disturbed to give a time.",
    "over_roofline": "The time is below what the measured ceilings allow.",
    "device_unavailable": "The device is not in this machine.",
    "not_written": "A source was requested, for example from a language model, and none was produced.",
    "screened": "Measured briefly by a search, and not selected for a full measurement.",
    "bad_problem": "A problem from elsewhere is invalid; its candidates cannot be judged.",
    "not_recorded": "Recorded measurements are replayed, and this variant is not among them.",
    "not_judged": "The harness itself failed to reach a verdict.",
}


def _field_texts_of_enum(owner: type) -> dict[str, str]:
    members: Mapping[str, Any] = owner.__members__  # type: ignore[attr-defined]
    return {
        members[name].value: text
        for name, text in _field_texts(owner).items()
        if name in members and members[name].value not in OUTCOMES
    }


def columns() -> str:
    """The metrics: columns of the table `variants`, by topic, with their names in MLflow."""
    from pipeline.performance.metrics import reference

    lines = [
        """# Metrics: columns of the table `variants`

Absent values are null. Columns named `estimate_…` hold estimates, all others measured or derived facts.
[Recipe](../recipes/metric.md).
"""
    ]
    for title, group in reference().items():
        lines += [
            f"## {title}",
            "",
            "| column | type | unit | meaning | in MLflow |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| `{each.name}` | {each.type} | {each.unit} | {_cell(each.meaning)} | "
            f"{'metric' if each.is_mlflow_metric else 'tag'} `{each.mlflow_name}` |"
            for each in group
        ]
        lines += [""]
    return "\n".join(lines)


def strategies() -> str:
    """Every strategy with its settings, and the options of conf/search that use it."""
    from pipeline.search.strategy_registry import strategy, strategy_names

    options: dict[str, list[str]] = {}
    for path in sorted((CONF / "search").glob("*.yaml")):
        options.setdefault(yaml.safe_load(path.read_text())["strategy"], []).append(path.stem)
    lines = [
        "# Search strategies",
        "",
        "An option of `conf/search` names a strategy and its settings. [Guide](../guide/search.md).",
        "",
    ]
    for name in strategy_names():
        found = strategy(name)
        lines += [f"## {name}", "", _cell(found.description), ""]
        if found.settings is not None:
            lines += [*_describe(found.settings), ""]
        for option in options.get(name, ()):
            text = re.sub(r"\A(?:#.*\n)+", "", (CONF / "search" / f"{option}.yaml").read_text())
            lines += [f"`conf/search/{option}.yaml`:", "", "```yaml", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _struct(annotation: Any) -> type[msgspec.Struct] | None:
    """The record in `Record | None`."""
    for each in (annotation, *typing.get_args(annotation)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return each
    return None


def backends() -> str:
    """Backends with the kinds of target that they compile for."""
    from pipeline.backends.registry import backend, backend_names

    lines = [
        "# Backends",
        "",
        "A backend compiles the sources of an implementation. [Recipe](../recipes/backend.md).",
        "",
        "| backend | targets | toolchain depends on | description |",
        "|---|---|---|---|",
    ]
    for name in backend_names():
        member = backend(name)
        matters = "source, target, shapes" if member.shape_matters else "source, target"
        kinds = ", ".join(f"`{kind}`" for kind in sorted(member.kinds))
        lines.append(f"| `{name}` | {kinds} | {matters} | {_cell(inspect.getdoc(type(member)) or '')} |")
    return "\n".join(lines)


def hardware() -> str:
    """Hardware targets with their limits and peaks."""
    lines = ["# Hardware targets", "", "From `conf/hardware`. Every number has a unit and a source.", ""]
    for path in sorted((CONF / "hardware").glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        lines += [f"## {path.stem}", "", f"{content['description']}", ""]
        lines += [f"Kind `{content['kind']}`, architecture `{content['architecture']}`.", ""]
        for group in ("limits", "peaks"):
            if content.get(group):
                lines += [f"| {group[:-1]} | value | unit | source |", "|---|---:|---|---|"]
                for name, quantity in content[group].items():
                    value = quantity["value"]
                    shown = f"{value:,}" if isinstance(value, int) else f"{value:g}"
                    lines.append(f"| `{name}` | {shown} | {quantity['unit']} | {_cell(quantity['source'])} |")
                lines += [""]
    return "\n".join(lines)


# Commands and errors.


def commands() -> str:
    """The commands with their options."""
    from pipeline.cli.main import kernelmill

    lines = [
        "# Commands",
        "",
        "`kernelmill COMMAND --help` prints the same. `python -m pipeline` is the same command.",
        "[Exit codes](errors.md).",
        "",
        *_command(kernelmill, None, "kernelmill"),
    ]
    return "\n".join(lines)


def _command(command: Any, parent: Any, name: str) -> list[str]:
    """Usage, help and options of a command, and of its subcommands."""
    context = click.Context(command, parent=parent, info_name=name)
    path = context.command_path
    lines = [f"{'#' * (2 if parent is None else len(path.split()))} {path}", ""]
    lines += ["```text", command.get_usage(context), "```", "", *_help(command.help or ""), ""]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
        for each in options:
            names = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
            lines.append(f"| {names} | {_cell(each.help or '')} |")
        lines += [""]
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None and not found.hidden:
                lines += _command(found, context, each)
    return lines


def _help(text: str) -> list[str]:
    """Click's paragraphs; those that it does not wrap are examples."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            title, _, rest = paragraph.removeprefix("\b\n").partition("\n")
            lines += [title, "", "```sh", textwrap.dedent(rest), "```", ""]
        else:
            lines += [paragraph, ""]
    return lines


def errors() -> str:
    """Exit codes, and the errors that a user can fix."""
    from pipeline.cli.exit_codes import MEANING

    module = importlib.import_module("pipeline.records.errors")
    lines = [
        "# Exit codes and errors",
        "",
        "| code | meaning |",
        "|---:|---|",
        *(f"| {code.value} | {meaning} |" for code, meaning in MEANING.items()),
        "",
        "Error messages are one line on standard error: what is wrong, what was found, what was",
        "expected, and what to do next. A traceback is a bug in Kernelmill. The exceptions in Python:",
        "",
        "| class | meaning |",
        "|---|---|",
        *(
            f"| `{name}` | {_cell(text)} |"
            for name, text in re.findall(r"── (\w+) +(.*)", module.__doc__ or "")
        ),
        "",
        "Failures of kernels are not errors: they are [outcomes](outcomes.md).",
    ]
    return "\n".join(lines)


def structure() -> str:
    """Rooms of the package by level, from the contract in pyproject.toml and the rooms' docstrings."""
    contracts = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    lines = [
        """# Structure of the code

`pipeline/` consists of packages on levels. A package imports from lower levels only, and packages on one
level do not import each other; `make lint` checks it. A package opens a few modules to the others, its
*doors*; `tests/test_house.py` checks them, and that no modules import each other in a circle.

To extend Kernelmill, start with the [recipes](../recipes/index.md): each names the files to write.

| level | package | contents |
|---:|---|---|"""
    ]
    details: list[str] = []
    rooms = [level.split(" | ") for level in layers if level != "__main__"]
    for number, names in zip(range(len(rooms), 0, -1), rooms, strict=True):
        for name in names:
            text = importlib.import_module(f"pipeline.{name}").__doc__ or ""
            paragraphs = inspect.cleandoc(text).split("\n\n")
            lines.append(f"| {number} | [`{name}/`](#{name}) | {_cell(paragraphs[0])} |")
            details += [f"## {name}", ""]
            for paragraph in paragraphs:
                title, doors, modules = paragraph.partition("Doors: ")
                listed = ", ".join(f"`{each}`" for each in modules.replace("\n", " ").split(", "))
                details += [f"*Doors:* {listed}" if doors and not title else paragraph, ""]
    return "\n".join([*lines, "", *details])


def _summary(owner: type) -> str:
    return (inspect.getdoc(owner) or "").split("\n\n")[0].replace("\n", " ")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "configuration": configuration,
    "strategies": strategies,
    "outcomes": outcomes,
    "columns": columns,
    "errors": errors,
    "backends": backends,
    "hardware": hardware,
    "structure": structure,
}
