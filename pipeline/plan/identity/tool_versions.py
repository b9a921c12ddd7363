"""Versions of what computes results: backends' tools and Python's libraries, read without importing them."""

import functools
import importlib.metadata
import platform

from pipeline.backends.devices.device_registry import outside_device_code
from pipeline.backends.registry import backend, outside_code
from pipeline.records.configuration.hardware import Target
from pipeline.records.record import Record

_PACKAGES = {
    "generate": ("numpy", "python", "simpleeval"),
    "compile": (),
    "verify": ("numpy", "torch"),
    "judge": ("numpy", "python", "torch"),
    "timing": ("numpy", "python", "scipy", "torch"),
    "mutate": ("numpy", "python", "torch"),
    "profile": ("numpy", "python", "scipy", "torch"),
    "aggregate": ("jinja2", "mlflow", "numpy", "pandas", "pyarrow", "scipy"),
}
"""What a stage computes with; a backend adds its own tools."""


class Toolchain(Record, frozen=True, kw_only=True):
    """The tools of one backend for one target, as they were found."""

    backend: str
    target: Target
    versions: dict[str, str]


def find_tools(name: str, target: Target) -> Toolchain:
    """Ask a backend for its tools, now; code of other packages, a backend's or a device's, is one of them."""
    codes = {f"backend {name}": outside_code(name), f"device {target.kind}": outside_device_code(target.kind)}
    own = {what: code for what, code in codes.items() if code is not None}
    return Toolchain(backend=name, target=target, versions=backend(name).toolchain(target) | own)


def library_versions(stage: str) -> dict[str, str]:
    """The libraries that a stage computes with."""
    return {name: version_of(name) for name in _PACKAGES[stage]}


def all_library_versions() -> dict[str, str]:
    """Those of all stages."""
    return {name: version for stage in _PACKAGES for name, version in library_versions(stage).items()}


@functools.cache
def version_of(distribution: str) -> str:
    """Of an installed library, or of Python; `absent` if it is not installed."""
    if distribution == "python":
        return platform.python_version()
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
