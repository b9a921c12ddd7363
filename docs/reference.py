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
the file and the key. Override a value with `group.key=value`. Examples are from `conf/`; keys that no file
there sets show their default. Settings of a search strategy are on [their own page](strategies.md), functions
and names in expressions on [another one](formulas.md).
"""
    ]
    for group, schema in GROUPS.items():
        examples = _examples(group, schema)
        lines += [f"## {group}", "", *_describe(schema, examples), ""]
        lines += [*_shortest(group), ""]
        lines += ["| option | description |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(text)} |" for name, text in _options(group)]
        lines += [""]
        for nested in _nested(schema):
            lines += [f"### {nested.__name__} {{ #{group}-{nested.__name__.lower()} }}", ""]
            lines += [*_describe(nested, examples), ""]
    return "\n".join(lines)


Examples = dict[tuple[type[msgspec.Struct], str], Any]
"""Schema and key -> a value that a YAML file gives."""
EXAMPLE_LENGTH = 60


def _describe(schema: type[msgspec.Struct], examples: Examples | None = None) -> list[str]:
    meanings = _field_texts(schema)
    titles = ["key", "type", "default", "meaning", *(["example"] if examples is not None else [])]
    lines = [_summary(schema), "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for field in msgspec.structs.fields(schema):
        meaning = re.sub(r"\bNone\b", "null", _cell(meanings.get(field.name, "")))
        cells = [f"`{field.encode_name}`", _type(field.type), _default(field), meaning]
        if examples is not None:
            found = examples.get((schema, field.encode_name))
            cells.append(_default(field) if found is None else _example(found))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _example(value: Any) -> str:
    """A value as YAML writes it, in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False)
    text = " ".join(text.removesuffix("\n").removesuffix("\n...").split())
    if len(text) > EXAMPLE_LENGTH:
        text = text[:EXAMPLE_LENGTH].rstrip() + " …"
    return f"`{text}`".replace("|", "\\|")


def _examples(group: str, schema: type[msgspec.Struct]) -> Examples:
    """For each key of the group's schemas, the first value in its files."""
    found: Examples = {}

    def visit(annotation: Any, value: Any) -> None:
        arguments = typing.get_args(annotation)
        if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            for field in msgspec.structs.fields(annotation) if isinstance(value, dict) else ():
                inner = value.get(field.encode_name)
                if inner is not None:
                    found.setdefault((annotation, field.encode_name), inner)
                    visit(field.type, inner)
        elif typing.get_origin(annotation) is dict and isinstance(value, dict):
            for inner in value.values():
                visit(arguments[1], inner)
        elif typing.get_origin(annotation) in (tuple, list) and isinstance(value, list):
            for inner in value:
                visit(arguments[0], inner)
        else:
            for argument in arguments:
                visit(argument, value)

    for path in sorted((CONF / group).rglob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        content = content.get(group, content) if isinstance(content.get(group), dict) else content
        visit(schema, {"name": path.stem} | content)
    return found


def _shortest(group: str) -> list[str]:
    """The group's shortest file, whole."""
    path = min((CONF / group).glob("*.yaml"), key=lambda path: (len(path.read_text()), path))
    return [f"`{path.as_posix()}`:", "", "```yaml", path.read_text().rstrip(), "```"]


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
    for path in sorted((CONF / group).rglob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        content = content.get(group, content) if isinstance(content.get(group), dict) else content
        name = path.relative_to(CONF / group).with_suffix("").as_posix()
        yield name, str(content.get("description", ""))


# Expressions and sources.


def formulas() -> str:
    """Functions and names of the expressions in conf/, scalars, and what a magnitude is."""
    from pipeline.records.formula import ELEMENT_BYTES, FUNCTIONS, PREFIXES

    dimensions = sorted({name for _, each in _workloads() for name in each.get("dimensions", {})})
    limits: dict[str, str] = {}
    for path in sorted((CONF / "hardware").glob("*.yaml")):
        for name, quantity in (yaml.safe_load(path.read_text()).get("limits") or {}).items():
            limits.setdefault(name, quantity["unit"])
    sizes = ", ".join(f"{size} for `{dtype}`" for dtype, size in ELEMENT_BYTES.items())
    lines = [
        f"""# Expressions, scalars and magnitudes

Dimensions, constraints, costs, reductions and launch formulas in `conf/kernel` are expressions in Python's
syntax. They are parsed and evaluated by Kernelmill, not executed by Python.

## Functions

{", ".join(f"`{name}`" for name in sorted(FUNCTIONS))}. `ceil_div(n, d)` is the quotient rounded up.

## Names

| name | where | value |
|---|---|---|
| a tunable (`BLOCK_M`, `num_warps`, …) | constraints, launch formulas | its value in the variant |
| a dimension of the kernel | costs, constraints, reductions, launch formulas | its extent |
| a dimension of the workload | dimensions of the kernel | its extent |
| an attribute of the kernel | constraints, launch formulas | its value |
| a limit of the target | constraints, launch formulas | from `conf/hardware` |
| `itemsize` | costs, constraints, launch formulas | bytes of the element type: {sizes} |

A prefix may name the owner: {", ".join(f"`{prefix}.`" for prefix in PREFIXES)}.

## Dimensions of workloads

One vocabulary for all kernels, so that one workload serves many. A kernel maps these names to its own
dimensions, for example `rows: tokens * heads`.

| dimension | for example |
|---|---|"""
    ]
    for name in dimensions:
        given = [
            (stem, each["dimensions"][name]) for stem, each in _workloads() if name in each["dimensions"]
        ]
        lines.append(f"| `{name}` | {given[0][1]} in `{given[0][0]}` |")
    lines += ["", "## Limits of targets", "", "| limit | unit |", "|---|---|"]
    lines += [f"| `{name}` | {unit} |" for name, unit in sorted(limits.items())]
    lines += [FORMULAS_END]
    return "\n".join(lines)


FORMULAS_END = """
## Scalars

`scalars` of a kernel are constants that are passed at run time, for example `eps: 1.0e-5`. The reference
gets them by keyword, C++ and CUDA C++ as `double` after dimensions and strides, Triton by name. `attributes`
are fixed at compile time: macros in C++ and CUDA C++, keywords elsewhere.

## Magnitude

`tolerance.magnitude` names a function that is called like the reference, in float64. For each output element
it returns the size of what was accumulated into it: for a sum of products, the sum of the products' absolute
values. The error bound is this magnitude times the rounding error of the declared accumulation
(`reduction`, `accumulate`), plus the rounding of the output. If every output is one rounding of its
inputs, the reference itself serves. `derived` samples the bound from the reference's own operations.
[Verification](../guide/verification.md) explains the bound."""


def _workloads() -> list[tuple[str, dict[str, Any]]]:
    paths = sorted((CONF / "workload").glob("*.yaml"), key=lambda path: (path.stem == "awkward", path))
    found = [(path.stem, yaml.safe_load(path.read_text())) for path in paths]
    return [(stem, each) for stem, each in found if each.get("dimensions")]


VECTOR_HEADER = Path("kernels/vector.hpp")
VECTOR_FUNCTIONS = {
    "load": "`LANES` elements from memory, converted to float32",
    "load_some": "the first `count` elements; the other lanes are `fill`",
    "store": "convert to the element type, to nearest even, and write `LANES` elements",
    "store_some": "write the first `count` lanes",
    "stream": "store past the caches; `to` must be `streamable`",
    "streamable": "whether an address is aligned for `stream`",
    "stream_fence": "call it in each thread after `stream`, before others read",
    "splat": "one value in all lanes",
    "maximum": "lane by lane; `right` if either is NaN",
    "any": "whether a comparison holds in any lane",
    "maximum_size": "the larger magnitude of each lane; NaN is above infinity",
    "exchange_halves": "half of the lanes of two vectors, the lower or the upper of each `2 Distance`",
    "transpose": "lane `j` of row `i` becomes lane `i` of row `j`",
    "reduce": "all lanes combined with an operation of two vectors",
    "reduce_sum": "sum of all lanes",
    "reduce_maximum": "largest lane",
    "exchange": "lane `i` of the result is lane `i ^ Distance`",
    "load_bytes": "`LANES` bytes as `Words`, or signed ones as `Ints`",
    "store_bytes": "the low 8 bits of each lane",
    "to_floats": "integers converted to float32",
    "look_up": "each lane's entry of 16 floats, by the low 4 bits of its index",
    "gather": "each lane's element of an array of floats, by its index",
    "gather_words": "four bytes from where each lane's offset says",
    "exp": "e^x for x up to 88, within 1.1 units in the last place",
    "sigmoid": "1 / (1 + e^-x)",
    "tanh": "within a rounding of 1, which is not relative to small results",
    "softplus": "log(1 + e^x), relative to the result",
    "scale": "`fraction` times two to the power of `exponent`, given as float and as integer",
    "to_float": "one element as float32",
    "to_element": "one float32 as an element",
    "narrow": "a vector of the element type, or of its bits",
    "bit_cast": "the same bits as another type",
    "load_raw": "a vector from memory without conversion",
    "store_raw": "a vector to memory without conversion",
    "reserve": "of the class `Scratch`: a buffer, kept between calls; null if memory is exhausted",
}
"""Function of the header -> what it returns or does."""
CONVERSION = re.compile(r"(widen|narrow)_\w+|b?float\w*_to_\w+")
"""Steps of `load` and `store`, which sources do not call."""


def vectors() -> str:
    """The functions of kernels/vector.hpp."""
    signature = re.compile(
        r"^(?:inline (?P<free>[\w:]+)| {4}(?P<member>void\*)) (?P<name>\w+)\((?P<arguments>[^)]*)\)"
    )
    found: dict[str, str] = {}
    for match in map(signature.match, VECTOR_HEADER.read_text().splitlines()):
        if match and not CONVERSION.fullmatch(match["name"]):
            returned = match["free"] or match["member"]
            found[match["name"]] = f"{returned} {match['name']}({match['arguments']})"
    if found.keys() != VECTOR_FUNCTIONS.keys():
        differ = ", ".join(sorted(found.keys() ^ VECTOR_FUNCTIONS.keys()))
        raise SystemExit(f"docs/reference.py: VECTOR_FUNCTIONS and {VECTOR_HEADER} differ: {differ}")
    return "\n".join(
        [
            """# C++ vectors: `kernels/vector.hpp`

Vectors of `LANES` floats for C++ kernels, with the same source on SSE2, AVX2, AVX-512 and NEON. `#include
"../vector.hpp"`; everything is in the namespace `vec`. The compile stage defines the macros `LANES` (a
tunable; 1 is scalar code) and one of `ELEMENT_FLOAT32`, `ELEMENT_FLOAT16`, `ELEMENT_BFLOAT16` (the
workload's dtype). Arithmetic is float32. [Recipe](../recipes/kernel.md).

| type | meaning |
|---|---|
| `Element` | an element in memory: `float`, or the bits of a 16-bit type |
| `Floats` | `LANES` floats; `+ - * /` and comparisons work lane by lane, `mask ? a : b` selects |
| `Ints`, `Words`, `Halves` | as many signed, unsigned and 16-bit integers |
| `Scratch` | a buffer that a thread keeps between calls |

| function | meaning |
|---|---|""",
            *(f"| `{found[name]}` | {meaning} |" for name, meaning in VECTOR_FUNCTIONS.items()),
        ]
    )


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
    "nondeterministic": "Equal inputs gave different results, or programs or threads race for an element.",
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
            f"{'metric' if each.is_mlflow_metric else 'tag'} `{each.mlflow_name}`{_mlflow_unit(each)} |"
            for each in group
        ]
        lines += [""]
    return "\n".join(lines)


def _mlflow_unit(metric: Any) -> str:
    """The unit in MLflow, if it is another one."""
    return f", {metric.mlflow_unit}" if metric.mlflow_unit != metric.unit else ""


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
    "formulas": formulas,
    "vectors": vectors,
    "strategies": strategies,
    "outcomes": outcomes,
    "columns": columns,
    "errors": errors,
    "backends": backends,
    "hardware": hardware,
    "structure": structure,
}
