"""Digest of a stage's code with all of the project that it imports, which Snakemake does not see.

The import graph is grimp's, which also reads imports inside of functions. Packages on the way count, and so
do modules that are named in strings (`"package.module:function"`, which a forked process imports) and the
other files of a package (templates). Members of a registry count only for the tasks that name them.

A module counts as its syntax tree without docstrings: comments, docstrings and formatting run nothing again.
"""

import contextlib
import functools
from collections.abc import Collection, Iterator
from pathlib import Path

import grimp

from pipeline.records.errors import StoreError
from pipeline.records.python_source import ParsedModule, parse_module
from pipeline.records.record import Record, digest_bytes, digest_parts, read_record, to_json
from pipeline.store.atomic import write_atomic

PACKAGE = "pipeline"
REGISTRIES = frozenset(
    {
        "pipeline.backends.devices.device_registry",
        "pipeline.backends.registry",
        "pipeline.search.strategy_registry",
        "pipeline.stages.optional",
    }
)
"""Modules that reach others by name: a task depends on the member that it names, not on the others."""


class Code:
    """The project's own code, read once."""

    def __init__(
        self,
        root: Path,
        *,
        package: str = PACKAGE,
        registries: Collection[str] = REGISTRIES,
        kept: Path | None = None,
    ) -> None:
        """`kept` is a folder in which what was read of a module is kept, by its content."""
        self._root = root
        self._memory = _Memory(kept)
        self._registries = frozenset(registries)
        self._imports = self._memory.imports(package, root / package)
        self._modules = frozenset(self._imports)
        self._parsed = functools.cache(lambda module: self._memory.parse(self._file(module).read_bytes()))
        self._owners = functools.cache(self._find_owners)
        self._file = functools.cache(self._find_file)

    def digest(self, *modules: str) -> str:
        """Digest of modules with all that they import."""
        parts = {}
        for name in self.closure(*modules):
            parts[name] = self._parsed(name).digest
            for path in self._data_files(name):
                parts[str(path.relative_to(self._root))] = digest_bytes(path.read_bytes())
        self._memory.write()
        return digest_parts(parts)

    def closure(self, *modules: str) -> tuple[str, ...]:
        """All modules of the project that run when these do; the way through a registry is not followed."""
        found: set[str] = set()
        todo = set(modules)
        while todo:
            name = todo.pop()
            if name in found or name in self._registries:
                continue
            found.add(name)
            todo.update(self._imports[name])
            todo |= self._modules & {text.partition(":")[0] for text in self._parsed(name).strings}
            todo |= self._modules & {name.rpartition(".")[0]}
        return tuple(sorted(found))

    def _data_files(self, module: str) -> Iterator[Path]:
        for path, owners in self._owners(self._file(module).parent).items():
            if module in owners:
                yield path

    def _find_owners(self, folder: Path) -> dict[Path, list[str]]:
        """Files of a package that are not Python: they belong to the modules that name them, else to all."""
        foreign = _foreign_files(folder)
        modules = [name for name in self._modules if self._file(name).parent == folder] if foreign else []
        owners = {}
        for path in foreign:
            first = path.relative_to(folder).parts[0]
            owners[path] = [name for name in modules if first in self._parsed(name).strings] or modules
        return owners

    def _find_file(self, module: str) -> Path:
        path = self._root.joinpath(*module.split("."))
        package = path / "__init__.py"  # a folder alone may be what an earlier version left behind
        return package if package.is_file() else path.with_suffix(".py")


class _Modules(Record, frozen=True, kw_only=True):
    by_content: dict[str, ParsedModule]
    imports: dict[str, dict[str, tuple[str, ...]]] = {}
    """Digest of a package's files -> module -> what it imports of the package; of the last package read."""


class _Memory:
    """Parsed modules by the digest of their content, and the import graph: to read all takes over a second.

    What this module's own source says goes into the file's name: another one might parse differently.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / f"modules-{digest_bytes(Path(__file__).read_bytes())}.json" if folder else None
        self._new = False
        self._known: dict[str, ParsedModule] = {}
        self._imports: dict[str, dict[str, tuple[str, ...]]] = {}
        if self._path is not None:
            with contextlib.suppress(StoreError):  # absent or broken
                found = read_record(self._path, _Modules)
                self._known, self._imports = found.by_content, found.imports

    def parse(self, source: bytes) -> ParsedModule:
        key = digest_bytes(source)
        if key not in self._known:
            self._known[key] = parse_module(source)
            self._new = True
        return self._known[key]

    def imports(self, package: str, folder: Path) -> dict[str, tuple[str, ...]]:
        """What each module of a package imports of it."""
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.py")}
        key = digest_parts({name: digest_bytes(content) for name, content in files.items()})
        if key not in self._imports:
            graph = grimp.build_graph(package, cache_dir=None)
            found = {name: tuple(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
            self._imports = {key: found}
            self._new = True
        return self._imports[key]

    def write(self) -> None:
        """Keep what was new."""
        if self._new and self._path is not None:
            write_atomic(self._path, to_json(_Modules(by_content=self._known, imports=self._imports)))
            self._new = False


def _foreign_files(folder: Path) -> tuple[Path, ...]:
    """Files of a package that are not Python, those of its plain subfolders too."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            found += _foreign_files(path)
        elif path.is_file() and path.suffix not in (".py", ".pyc", ".typed"):
            found.append(path)
    return tuple(found)
