"""Installed packages that a kernel's yaml names: their files, their versions, how to get a missing one."""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from pipeline.backends.local_imports import closure
from pipeline.records.configuration.kernel import Call
from pipeline.records.errors import ToolchainError


def package_files(call: Call) -> Mapping[str, Path]:
    """The callable's module and all of its package that it imports: name below the package's folder -> file.

    Nothing is imported for it, so it costs milliseconds and needs no torch.

    Raises
    ------
    ToolchainError
        The package is not installed, or has no such module; the text says how to install it.
    """
    module = call.function.partition(":")[0]
    parts = tuple(module.split("."))
    root = _folder_above(parts[0], call)
    file = root.joinpath(*parts)
    start = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if not start.is_file():
        raise ToolchainError(
            f"there is no module {module} in {call.package} {version(call)}: {_install(call)}"
        )
    files = [start, *_initials(root, parts)]
    found = closure(files, root, within=parts[0])
    return {path.relative_to(root).as_posix(): path for path in found}


def version(call: Call) -> str:
    """Of the installed distribution.

    Raises
    ------
    ToolchainError
        It is not installed.
    """
    try:
        return importlib.metadata.version(call.package)
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError(f"{call.package} is not installed: {_install(call)}") from None


def forget(function: str) -> None:
    """Drop the package's modules, so that the next import finds the device of this moment.

    A project's own modules and torch stay: they are shared with others of this process.
    """
    package = function.partition(":")[0].partition(".")[0]
    if package in ("torch", "triton", "pipeline"):
        return
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


def _folder_above(package: str, call: Call) -> Path:
    specification = importlib.util.find_spec(package)
    if specification is None or specification.origin is None:
        raise ToolchainError(f"{call.function}: {call.package} is not installed: {_install(call)}")
    origin = Path(specification.origin)
    return origin.parents[1] if origin.name == "__init__.py" else origin.parent


def _initials(root: Path, parts: tuple[str, ...]) -> list[Path]:
    """The packages on the way run first."""
    found = [root.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts))]
    return [path for path in found if path.is_file()]


def _install(call: Call) -> str:
    wanted = f"-e '.[{call.extra}]'" if call.extra else call.package
    return f"python -m pip install {wanted}"
