"""NVIDIA's binary tools (ptxas, nvdisasm, cuobjdump), which Triton's wheel carries."""

import functools
import importlib.util
from pathlib import Path

from pipeline.records.errors import ToolchainError


@functools.cache
def tools() -> Path:
    """The folder of the tools; Triton itself is not imported.

    Raises
    ------
    ToolchainError
        Triton is not installed.
    """
    found = importlib.util.find_spec("triton")
    if found is None or not found.submodule_search_locations:
        raise ToolchainError("triton is not installed: pip install triton (Linux only)")
    return Path(found.submodule_search_locations[0]) / "backends" / "nvidia" / "bin"
