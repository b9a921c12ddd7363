"""The structure of `pipeline/`: no circles of modules, unique names, small folders, doors of the rooms."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "pipeline"
MODULES_AT_MOST = 18
"""Side by side in one folder; beyond about fifteen a reader needs sub-rooms."""
NAMED_BY_USERS = (Path("cli/commands"), Path("search/strategies"), Path("stages"))
"""Commands, strategies and stages: a module is called as users call it, whatever has that name elsewhere."""
NO_NAMES = frozenset({"utils", "common", "helpers", "misc"})
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


@functools.cache
def graph() -> grimp.ImportGraph:
    """All imports, those inside of functions too."""
    return grimp.build_graph("pipeline", cache_dir=None)


def modules() -> list[Path]:
    """All files but `__init__` and `__main__`, from the package's folder."""
    found = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return sorted(path for path in found if path.stem not in ("__init__", "__main__"))


def circles() -> list[list[str]]:
    """Strongly connected groups of modules (Tarjan's algorithm, without recursion)."""
    imports = {name: sorted(graph().find_modules_directly_imported_by(name)) for name in graph().modules}
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in sorted(imports):
        work = [(start, iter(imports[start]))] if start not in order else []
        while work:
            name, rest = work[-1]
            if name not in order:
                order[name] = low[name] = len(order)
                stack.append(name)
            for other in rest:
                if other not in order:
                    work.append((other, iter(imports[other])))
                    break
                if other in stack:
                    low[name] = min(low[name], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    at = stack.index(name)
                    if len(stack) - at > 1:
                        found.append(sorted(stack[at:]))
                    del stack[at:]
    return found


def test_no_circle_of_modules() -> None:
    """Each module can be understood before the ones that import it."""
    assert circles() == []


def mirrored(paths: list[Path]) -> bool:
    """Files of one name in sibling folders, such as `cpp/facts.py` and `cuda/facts.py`."""
    return len({path.parent.parent for path in paths}) == 1


def test_module_names_are_unique() -> None:
    """Except siblings that mirror each other, where one name is the point."""
    named = defaultdict(list)
    for path in modules():
        if path.parent not in NAMED_BY_USERS:
            named[path.stem].append(path)
    twice = {name: list(map(str, paths)) for name, paths in named.items() if len(paths) > 1}
    twice = {name: paths for name, paths in twice.items() if not mirrored(list(map(Path, paths)))}
    assert twice == {}
    assert not NO_NAMES & named.keys()


def test_class_names_are_unique() -> None:
    """A public class is called what no other one is called; siblings that mirror each other may be."""
    named = defaultdict(list)
    for path in modules():
        for node in ast.parse((PACKAGE / path).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named[node.name].append(path)
    twice = {name: paths for name, paths in named.items() if len(paths) > 1 and not mirrored(paths)}
    assert twice == {}


def test_folders_are_small() -> None:
    """A reader sees what a folder holds at a glance; commands, strategies, stages are known by name."""
    counts: dict[Path, int] = defaultdict(int)
    for path in modules():
        counts[path.parent] += path.parent not in NAMED_BY_USERS
    assert {str(folder): count for folder, count in counts.items() if count > MODULES_AT_MOST} == {}


def doors(room: str) -> list[str] | None:
    """What a room's docstring names as open to other rooms; None if it names nothing."""
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    match = re.search(r"^Doors:(.*?)(?:\n\s*\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"[\w.]+", match[1]) if match else None


def entered(room: str) -> Iterator[tuple[str, str]]:
    """Modules of a room that other rooms import: (from, to), names relative to `pipeline` and to the room."""
    prefix = f"pipeline.{room}."
    for name in sorted(graph().modules):
        if name.startswith(prefix) or name == prefix[:-1]:
            continue
        for other in sorted(graph().find_modules_directly_imported_by(name)):
            if other.startswith(prefix):
                yield name.removeprefix("pipeline."), other.removeprefix(prefix)


@pytest.mark.parametrize("room", ROOMS)
def test_doors(room: str) -> None:
    """What others import is named in the room's `__init__`."""
    named = doors(room)
    assert named is not None, f"pipeline/{room}/__init__.py: no line `Doors: …`"
    used = list(entered(room))
    closed = [f"{name} -> {other}" for name, other in used if not any(_opens(door, other) for door in named)]
    assert closed == []


def _opens(door: str, module: str) -> bool:
    return module == door or module.startswith(f"{door}.")
