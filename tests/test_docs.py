"""The documentation: its site builds without a dead link, its commands exist, its English is plain."""

import ast
import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.plan.config.groups import GROUPS, options
from tests.paths import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
COMMANDS = [page for page in PAGES if "results" not in page.parts and page.name != "CHANGELOG.md"]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AVOIDED = re.compile(
    r"\b(told|beside|per cents?|what comes? of|what came of|whoever|mend(ed|ing)?|not told apart)\b",
    re.IGNORECASE,
)
"""Better: reported, compared with, percent, the result, anyone who, fixed, indistinguishable."""
SNAKEMAKE_VALUES = ("--cores", "--profile", "--workflow-profile", "--until")


def name(page: Path) -> str:
    """As tests call it."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_plain_english(page: Path) -> None:
    """No word of the short list; tables of results quote messages and descriptions from elsewhere."""
    lines = page.read_text().splitlines()
    quoted = ("|", "- `--only") if "results" in page.parts else ()
    prose = [re.sub(r"`[^`]*`", "", line) for line in lines if not line.startswith(quoted)]
    found = [line for line in prose if AVOIDED.search(line)]
    assert not found, found


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    """Without a dead link or anchor, a page that is missing in the navigation, or the network."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: python -m pip install -e '.[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout
    assert (tmp_path / "site" / "reference" / "configuration.html").is_file()


@pytest.mark.parametrize("page", COMMANDS, ids=name)
def test_commands_exist(page: Path) -> None:
    """Each command of a page: its target or module, its options, and the names in conf/."""
    rules = RULES | set(re.findall(r"^rule (\w+):", page.read_text(), re.MULTILINE))
    made = set(re.findall(r"^```yaml conf/(\w+/\w+)\.yaml$", page.read_text(), re.MULTILINE))
    problems = [
        f"{' '.join(words)}: {problem}"
        for words in commands(page)
        for problem in [*problems_of(words, rules), *problems_of_overrides(words, made)]
    ]
    assert not problems, "\n".join(problems)


def test_subcommands_exist() -> None:
    """Each `kernelmill …` of all pages: its subcommand and its options."""
    root = root_command()
    problems = [
        f"{name(page)}: {' '.join(words)}: {problem}"
        for page in COMMANDS
        for words in commands(page)
        if words[0] == "kernelmill"
        for problem in problems_of_kernelmill(root, words[1:])
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("page", [page for page in COMMANDS if PYTHON.search(page.read_text())], ids=name)
def test_imports_exist(page: Path) -> None:
    """What the Python examples of a page import from this project."""
    for block in PYTHON.findall(page.read_text()):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline"):
                module = importlib.import_module(node.module or "")
                missing = [each.name for each in node.names if not hasattr(module, each.name)]
                assert not missing, f"{node.module} has no {', '.join(missing)}"


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of a page, without comments and the prompt."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True) if is_command(line) else []
            if words:
                yield words


def is_command(line: str) -> bool:
    """Whether it is one that is checked; consoles show output, too."""
    return line.removeprefix("$ ").startswith(("kernelmill ", "snakemake ", "make ", "python -m "))


def problems_of(words: list[str], rules: set[str]) -> Iterator[str]:
    """A target or module that does not exist."""
    match words:
        case ["snakemake", *rest]:
            targets = snakemake_targets(rest)
            yield from (f"no rule '{each}'" for each in targets if each not in rules)
        case ["make", *rest]:
            yield from (f"no target '{each}'" for each in rest if "=" not in each and each not in TARGETS)
        case ["python", "-m", module, *rest]:
            yield from problems_of_module(module, rest)


RULES = {
    rule
    for path in [ROOT / "Snakefile", *(ROOT / "workflows" / "rules").glob("*.smk")]
    for rule in re.findall(r"^\s*rule (\w+):", path.read_text(), re.MULTILINE)
}
TARGETS = set(re.findall(r"^([a-z][a-z-]*(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def snakemake_targets(words: list[str]) -> list[str]:
    """Those that are neither options nor their values."""
    found, skip = [], False
    for word in words:
        if not skip and not word.startswith("-") and "=" not in word:
            found.append(word)
        skip = word in SNAKEMAKE_VALUES
    return found


def problems_of_module(module: str, words: list[str]) -> Iterator[str]:
    """A module of this project that is not there, or an option that its source does not name."""
    if not module.startswith(("pipeline", "tests")):
        return
    found = importlib.util.find_spec(module)
    if found is None:
        yield f"no module '{module}'"
        return
    folder = Path(*module.split("."))
    sources = [ROOT / folder.with_suffix(".py"), ROOT / folder / "__main__.py"]
    text = "".join(path.read_text() for path in sources if path.is_file())
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option != "--" and f'"{option}"' not in text:
            yield f"no option '{option}'"


def problems_of_overrides(words: list[str], made: set[str]) -> Iterator[str]:
    """Names of options that conf/ does not have, and the page does not add."""
    for word in [part for each in words for part in each.split()]:
        group, given, value = word.partition("=")
        if given and group in GROUPS and re.fullmatch(r"[\w,]+", value) and not value.isupper():
            known = options(ROOT / "conf", group)
            yield from (
                f"no {group} '{each}'"
                for each in value.split(",")
                if each not in known and f"{group}/{each}" not in made
            )


def problems_of_kernelmill(command: Any, words: list[str]) -> Iterator[str]:
    """A subcommand or an option that the command does not have."""
    import click

    path = "kernelmill"
    context: click.Context | None = None
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context, info_name=path)
        if not words:
            return
        path, words = words[0], words[1:]
        found = command.get_command(context, path)
        if found is None:
            yield f"no command '{path}'"
            return
        command = found
    known = {"--help"}
    known.update(each for option in command.params for each in (*option.opts, *option.secondary_opts))
    ends = [words.index(each) for each in ("--", "|") if each in words]
    ours = words[: min(ends, default=len(words))]
    for word in ours:
        option = word.partition("=")[0]
        if re.match(r"--?[a-z]", option) and option not in known:
            yield f"no option '{option}'"


def root_command() -> Any:
    """The console script."""
    from pipeline.cli.main import kernelmill

    return kernelmill
