"""What a cubin depends on besides its source: versions of the packages, read without importing them."""

import functools
import importlib.metadata

from pipeline.backends.cpp import compiler
from pipeline.records.errors import ToolchainError

MAJOR_VERSIONS = {"cuda-core": "1", "cuda-bindings": "13", "nvidia-cuda-nvrtc": "13"}
"""Their interfaces change with these."""
PACKAGES = tuple(MAJOR_VERSIONS)
HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl")
"""cuda_fp16.h, mma.h and their like: only for sources that include them."""
INSTALL = 'python -m pip install "cuda-core>=1.2,<2" "cuda-bindings>=13,<14" "nvidia-cuda-nvrtc>=13,<14"'


@functools.cache
def versions() -> dict[str, str]:
    """By package; `c++` is what the emulation compiles with, where there is one.

    Raises
    ------
    ToolchainError
        A package is missing or of another major version; the text has the command that installs them.
    """
    found = {name: _version(name) for name in PACKAGES}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        raise ToolchainError(f"the backend cuda needs {', '.join(missing)}: {INSTALL}")
    for name, major in MAJOR_VERSIONS.items():
        if str(found[name]).split(".")[0] != major:
            raise ToolchainError(f"{name}: got {found[name]}, expected a version {major}.x: {INSTALL}")
    headers = {name: _version(name) for name in HEADERS}
    known = {name: version for name, version in (found | headers).items() if version is not None}
    try:
        return known | compiler.toolchain()
    except ToolchainError:  # a device needs none
        return known


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
