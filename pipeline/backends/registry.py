"""The backends: those of this project, one line each, and those of other packages, one entry point each."""

import functools
import importlib
from typing import TYPE_CHECKING

from pipeline.backends.backend import Backend
from pipeline.backends.outside_code import package_digest
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.entry_points import entry_points
from pipeline.records.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.backends.cpp.extension_builds import Emulation

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
    if not (isinstance(kind, type) and issubclass(kind, Backend)):
        raise ConfigError(
            f"backend {name}: expected a class derived from pipeline.backends.backend.Backend, got {where}"
        )
    try:
        return kind()
    except TypeError as error:  # an abstract method is missing, and the text names it
        raise ConfigError(f"backend {name}: {error}") from error


@functools.cache
def candidate_backends() -> tuple[str, ...]:
    """Names of those whose language candidates in the format of KernelBench may contain."""
    return tuple(name for name in backend_names() if backend(name).in_candidates)


def emulated_extensions() -> "Emulation | None":
    """How extensions of PyTorch with sources for a device are built for the host; None: they are not."""
    found = (backend(name).emulated_extensions() for name in candidate_backends())
    return next((each for each in found if each is not None), None)


def device_preload(kind: DeviceKind) -> tuple[str, ...]:
    """Modules for fork servers whose children may launch anything on a device of this kind."""
    members = (backend(name) for name in backend_names())
    return tuple(module for member in members if kind in member.kinds for module in member.device_preload)


@functools.cache
def source_suffixes() -> frozenset[str]:
    """Of the files in which the languages of all backends are written."""
    return frozenset(suffix for name in backend_names() for suffix in backend(name).language.suffixes)


def outside_code(name: str) -> str | None:
    """Digest of a backend's package if that is not this project; None for a backend of this project.

    Versions of other libraries belong to `Backend.toolchain`.
    """
    return None if name in _OWN else package_digest(f"backend {name}", _where(name).partition(":")[0])


def _where(name: str) -> str:
    """`module:Class`; other packages are searched only if the name is not one of this project's."""
    if name in _OWN:
        return _OWN[name]
    found = entry_points(GROUP).get(name)
    if found is None:
        raise ConfigError(f"backend: expected one of {', '.join(backend_names())}, got '{name}'")
    return found.value
