"""The backends: those of this project, one line each, and those of other packages, one entry point each."""

import functools
import importlib
import importlib.util
from pathlib import Path

from pipeline.backends.backend import Backend
from pipeline.backends.local_imports import closure
from pipeline.records.entry_points import entry_points
from pipeline.records.errors import ConfigError
from pipeline.records.record import digest_bytes, digest_parts

GROUP = "kernelmill.backends"
"""Entry points of other packages: name -> `module:Class`."""

_OWN = {
    "cpp": "pipeline.backends.cpp:Cpp",
    "cuda": "pipeline.backends.cuda:Cuda",
    "triton": "pipeline.backends.triton:Triton",
}


@functools.cache
def backend_names() -> tuple[str, ...]:
    """Names of all backends, those of this project first."""
    return (*_OWN, *(name for name in entry_points(GROUP) if name not in _OWN))


def backend(name: str) -> Backend:
    """The backend of that name; its heavy imports happen when it is used.

    Raises
    ------
    ConfigError
        The name is unknown, and the text lists the known ones; or its entry point cannot be loaded.
    """
    where = _where(name)
    module, _, attribute = where.partition(":")
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        if name in _OWN:
            raise
        raise ConfigError(f"backend {name}: {where} cannot be loaded: {error}") from error
    found: Backend = kind()
    return found


def outside_code(name: str) -> str | None:
    """Digest of a backend's package if that is not this project; None for a backend of this project.

    It covers the backend's module and all of its package that this imports, and comments count. Versions of
    other libraries belong to `Backend.toolchain`.
    """
    if name in _OWN:
        return None
    module = _where(name).partition(":")[0]
    parts = module.split(".")
    specification = importlib.util.find_spec(module)
    if specification is None or specification.origin is None:
        raise ConfigError(f"backend {name}: there is no module {module}")
    file = Path(specification.origin)
    root = file.parents[len(parts) - (file.name != "__init__.py")]
    initials = [root.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts))]
    files = closure([file, *(path for path in initials if path.is_file())], root, within=parts[0])
    return digest_parts(
        {path.relative_to(root).as_posix(): digest_bytes(path.read_bytes()) for path in files}
    )


def _where(name: str) -> str:
    """`module:Class`; other packages are searched only if the name is not one of this project's."""
    if name in _OWN:
        return _OWN[name]
    found = entry_points(GROUP).get(name)
    if found is None:
        raise ConfigError(f"backend: expected one of {', '.join(backend_names())}, got '{name}'")
    return found.value
