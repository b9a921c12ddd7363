"""Digests of what kernels are made of: their sources and their references, each file read once."""

import ast
import functools
import importlib.util
import os
from pathlib import Path

from pipeline.backends.installed_packages import package_files
from pipeline.backends.registry import backend
from pipeline.records.configuration.kernel import DERIVED, Implementation, Kernel
from pipeline.records.errors import ConfigError, hint
from pipeline.records.python_source import code_digest
from pipeline.records.record import digest_bytes, digest_parts


class Sources:
    """Digests of kernels' files, each read once."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.read: set[Path] = set()
        """All files that count: a change of one means reading them again."""
        self._digest = functools.cache(self._read)

    def implementation(self, implementation: Implementation) -> str:
        """Of an implementation's source with all local files that it includes or imports.

        Files of an installed package are named as it names them, wherever it lies.

        Raises
        ------
        ToolchainError
            The package is missing.
        """
        if implementation.call is not None:
            named = package_files(implementation.call)
            return digest_parts({name: self._digest(file) for name, file in named.items()})
        files = backend(implementation.backend).sources(implementation, self.root)
        return digest_parts({os.path.relpath(file, self.root): self._digest(file) for file in files})

    def reference(self, kernel: Kernel, where: str) -> str:
        """Of the modules that hold the reference and the magnitude; comments do not count.

        Raises
        ------
        ConfigError
            There is no such module.
        """
        parts: dict[str, str] = {}
        named = {"reference": kernel.reference, "tolerance.magnitude": kernel.tolerance.magnitude}
        if kernel.tolerance.magnitude == DERIVED:
            del named["tolerance.magnitude"]
        for key, path in named.items():
            parts |= self._module(path, f"{where}: {key}")
        return digest_parts(parts)

    def vendors(self, kernel: Kernel, where: str) -> str | None:
        """Of the modules that hold the vendors' baselines; None where there are none.

        Raises
        ------
        ConfigError
            There is no such module.
        """
        parts: dict[str, str] = {}
        for name, vendor in kernel.vendors.items():
            paths = {"function": vendor.function, "set_up": vendor.set_up, "prepare": vendor.prepare}
            for key, path in paths.items():
                if path is not None:
                    parts |= self._module(path, f"{where}: vendors.{name}.{key}")
        return digest_parts(parts) if parts else None

    def _module(self, path: str, where: str) -> dict[str, str]:
        """The module of a `module:function`, with the modules of the repository that it imports."""
        module, _, function = path.partition(":")
        found: dict[str, str] = {}
        todo = {module}
        while todo:
            name = todo.pop()
            file = self._file(name)
            if name in found or not file.is_file():
                continue
            self.read.add(file)
            source = file.read_bytes()
            found[name] = code_digest(source)
            todo |= _imported(source)
        if not found and not _is_installed(module):
            raise ConfigError(f"{where}: there is no module {module} (looked for {self._file(module)})")
        if found:
            _check_function(function, self._file(module), where)
        return found or {module: "installed"}  # the toolchain's versions tell which one

    def _file(self, module: str) -> Path:
        return self.root.joinpath(*module.split(".")).with_suffix(".py")

    def _read(self, file: Path) -> str:
        self.read.add(file)
        return digest_bytes(file.read_bytes())


def _imported(source: bytes) -> set[str]:
    """Names of the modules that a source may import; relative imports are not used in kernels."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _check_function(name: str, file: Path, where: str) -> None:
    """Raise ConfigError if a source plainly does not define a name at its top level; it is not run."""
    tree = ast.parse(file.read_bytes())
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    others = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.Expr)]
    if name not in functions and not any(_may_define(node, name) for node in others):
        raise ConfigError(f"{where}: {file} has no function '{name}'{hint(name, functions)}")


def _may_define(node: ast.stmt, name: str) -> bool:
    """An import, an assignment or anything nested that names it, or an import of everything."""
    names = {getattr(each, key, None) for each in ast.walk(node) for key in ("id", "name", "asname", "attr")}
    return name in names or "*" in names


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
