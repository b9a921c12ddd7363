"""The digest of a stage's code covers what it imports, and nothing that only readers see."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.plan.identity import import_closure
from pipeline.records import python_source
from pipeline.records.python_source import code_digest
from tests.paths import ROOT

FILES = {
    "__init__.py": "",
    "stages/__init__.py": "",
    "stages/verify.py": (
        "from toy.checks import gate\n\n"
        "def main():\n    from toy.late import value\n    return 'toy.forked:serve', value\n"
    ),
    "stages/profile.py": "from toy.registry import member\n",
    "checks/__init__.py": "from toy.names import NAME\n",
    "checks/gate.py": "TEMPLATES = 'templates'\n",
    "checks/other.py": "",
    "checks/templates/page.html": "<p>",
    "checks/plain/data.csv": "1,2",
    "forked.py": "def serve():\n    pass\n",
    "late.py": "value = 1\n",
    "names.py": "NAME = 'x'\n",
    "registry.py": "def member(name):\n    from toy import left, right\n",
    "left.py": "",
    "right.py": "",
    "unused.py": "",
}


def read(root: Path) -> import_closure.Code:
    """The toy package's code."""
    return import_closure.Code(root, package="toy", registries={"toy.registry"})


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of its own, with one registry."""
    for path, content in FILES.items():
        file = tmp_path / "toy" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("toy", None)


def test_closure(toy: Path) -> None:
    """Imports, imports in functions, packages on the way, and modules that strings name."""
    assert read(toy).closure("toy.stages.verify") == (
        "toy",
        "toy.checks",
        "toy.checks.gate",
        "toy.forked",
        "toy.late",
        "toy.names",
        "toy.stages",
        "toy.stages.verify",
    )


def test_a_registry_is_not_followed(toy: Path) -> None:
    """A task depends on the member that it names."""
    assert "toy.left" not in read(toy).closure("toy.stages.profile")
    closure = read(toy).closure("toy.stages.profile", "toy.left")
    assert "toy.left" in closure
    assert "toy.right" not in closure


@pytest.mark.parametrize(
    ("path", "content", "changes"),
    [
        ("late.py", "value = 2\n", True),
        ("forked.py", "def serve():\n    return 1\n", True),
        ("checks/__init__.py", "from toy.names import NAME as OTHER\n", True),
        ("checks/templates/page.html", "<p>changed", True),
        ("checks/plain/data.csv", "changed", True),
        ("late.py", '"""A docstring."""\n\n# a comment\nvalue = (\n    1\n)\n', False),
        ("forked.py", 'def serve():\n    """Now it is said."""\n    pass\n', False),
        ("unused.py", "value = 2\n", False),
        ("checks/other.py", "value = 2\n", False),
        ("left.py", "value = 2\n", False),
    ],
)
def test_what_changes_the_digest(toy: Path, path: str, content: str, changes: bool) -> None:
    """Code that runs, and templates; not comments, docstrings, formatting or other modules."""
    before = read(toy).digest("toy.stages.verify")
    (toy / "toy" / path).write_text(content)
    assert (read(toy).digest("toy.stages.verify") != before) is changes


def test_a_template_belongs_to_the_modules_that_name_it(toy: Path) -> None:
    """A neighbour that does not name a folder does not depend on it; what nobody names is everybody's."""
    before = read(toy).digest("toy.checks.other")
    (toy / "toy/checks/templates/page.html").write_text("changed")
    assert read(toy).digest("toy.checks.other") == before
    (toy / "toy/checks/plain/data.csv").write_text("changed")
    assert read(toy).digest("toy.checks.other") != before


def test_fields_are_documented_without_consequences() -> None:
    """Text below a field is a docstring too; a string that is used is not."""
    plain = code_digest(b"class A:\n    x: int\n")
    assert code_digest(b'class A:\n    x: int\n    """In seconds."""\n') == plain
    assert code_digest(b'class A:\n    x: int = "In seconds."\n') != plain


@pytest.mark.parametrize(
    "stage", ["generate", "compile", "verify", "profile", "aggregate", "report", "track"]
)
def test_each_stage_has_a_closure(stage: str) -> None:
    """The real stages: their records are in, the front ends are not."""
    closure = import_closure.Code(ROOT).closure(f"pipeline.stages.{stage}")
    assert "pipeline.records.record" in closure
    assert not {name for name in closure if name.startswith(("pipeline.plan", "pipeline.cli"))}


def test_digest_is_alike_in_every_python(tmp_path: Path) -> None:
    """Another version of Python, where there is one, reads the same digests; fields it adds do not count."""
    source = b"def f(a, *b):\n    return f'{a:>{b}}', [], None, ''\n\nclass C(int):\n    x: int = 1\n"
    tree = ast.parse(source)
    before = python_source.syntax_form(tree, set())
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node._fields = tuple(name for name in node._fields if name != "type_params")
    assert python_source.syntax_form(tree, set()) == before
    assert "type_params" not in repr(before)


def test_empty_text_counts() -> None:
    """An empty string is a value like any other, but not behind a field of an f-string."""
    assert code_digest(b"f(x, '')") != code_digest(b"f(x)")
    assert code_digest(b"return_ = None") != code_digest(b"return_ = ''")
    tree = ast.parse(b"f'{a}'")
    assert isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.JoinedStr)
    before = python_source.syntax_form(tree, set())
    tree.body[0].value.values.append(ast.Constant(""))
    assert python_source.syntax_form(tree, set()) == before


def test_what_was_read_of_a_module_is_kept(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read twice, an edited module is read again with its imports, a broken file is left out."""
    parsed: list[bytes] = []
    graphs: list[str] = []
    build = import_closure.grimp.build_graph
    monkeypatch.setattr(
        import_closure.grimp, "build_graph", lambda name, **how: (graphs.append(name), build(name, **how))[1]
    )
    real = import_closure.parse_module
    monkeypatch.setattr(
        import_closure, "parse_module", lambda source: (parsed.append(source), real(source))[1]
    )

    def digest() -> str:
        root = import_closure.Code(toy, package="toy", registries={"toy.registry"}, kept=toy / "kept")
        return root.digest("toy.stages.verify")

    first = digest()
    assert first == read(toy).digest("toy.stages.verify")
    parsed.clear()
    graphs.clear()
    assert digest() == first
    assert not parsed
    assert not graphs
    (toy / "toy" / "late.py").write_text("value = 2\n")
    second = digest()
    assert second != first
    assert parsed == [b"value = 2\n"]
    (toy / "toy" / "newer.py").write_text("value = 3\n")
    assert digest() == second  # nothing imports it
    (toy / "toy" / "late.py").write_text("import toy.newer\n")
    third = digest()
    (toy / "toy" / "newer.py").write_text("value = 4\n")
    assert digest() != third
    parsed.clear()
    for path in (toy / "kept").iterdir():
        path.write_bytes(path.read_bytes()[:50])
    digest()
    assert len(parsed) > 2
